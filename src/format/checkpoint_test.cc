#include "format/checkpoint.h"

#include <functional>

#include <sys/stat.h>

#include "base/half.h"
#include "format/test_files.h"

namespace driftwood::format {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig =
    R"({"model_type":"llama","num_hidden_layers":2,"rms_norm_eps":1e-5,"tie_word_embeddings":true,)"
    R"("nothing":null,"rope_parameters":{"rope_type":"llama3","factor":8.0},"eos_token_id":[2,3],"big":18446744073709551615})";

std::string u8_tensors(const std::vector<std::string>& names) {
  std::string header = "{";
  size_t at = 0;
  for (const std::string& n : names) {
    header += (at > 0 ? "," : "") + ("\"" + n) + R"(":{"dtype":"U8","shape":[4],"data_offsets":[)" +
              std::to_string(at) + "," + std::to_string(at + 4) + "]}";
    at += 4;
  }
  return safetensors(header + "}", at);
}

void expect_error(const Status& status, Code code, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "'" << word << "' is not in: " << status.message();
  }
}

TEST(Folder, ReadsConfigAsDottedPaths) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", u8_tensors({"x", "y"}));
  folder.write("tokenizer.json", "{}");
  const auto c = open_checkpoint(folder.path());
  ASSERT_TRUE(c.is_ok()) << c.status().message();
  EXPECT_EQ((*c)->format(), FileFormat::kHuggingFace);
  EXPECT_EQ(metadata_int(**c, "num_hidden_layers").value(), 2);
  EXPECT_EQ(metadata_float(**c, "rms_norm_eps").value(), 1e-5);
  EXPECT_EQ(metadata_float(**c, "num_hidden_layers").value(), 2.0);
  EXPECT_EQ(metadata_int(**c, "rope_parameters.factor").value(), 8);
  EXPECT_EQ(metadata_string(**c, "rope_parameters.rope_type").value(), "llama3");
  EXPECT_EQ(metadata_bool_or(**c, "tie_word_embeddings"), true);
  EXPECT_EQ((*c)->metadata("nothing"), nullptr);
  EXPECT_EQ((*c)->metadata("eos_token_id")->array.at(1).integer, 3);
  EXPECT_EQ((*c)->metadata("big")->unsigned_integer, UINT64_MAX);
  EXPECT_EQ(metadata_int_or(**c, "big"), std::nullopt);
  expect_error(metadata_int(**c, "big").status(), Code::kInvalidArgument, {folder.path(), "'big'"});
  expect_error(metadata_int(**c, "rms_norm_eps").status(), Code::kInvalidArgument, {"'rms_norm_eps'"});
  expect_error(metadata_string(**c, "absent").status(), Code::kNotFound, {folder.path(), "'absent'"});
  EXPECT_EQ((*c)->side_file("tokenizer.json").value(), "{}");
  EXPECT_EQ((*c)->side_file("none.json").status().code(), Code::kNotFound);
  EXPECT_EQ((*c)->side_file("../x").status().code(), Code::kInvalidArgument);
  EXPECT_EQ((*c)->find("z"), nullptr);
  ASSERT_NE((*c)->find("y"), nullptr);
  EXPECT_EQ((*c)->total_tensor_bytes(), 8);

  const auto file = open_checkpoint(folder.path() + "/model.safetensors");
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ((*file)->fingerprint_hex(), (*c)->fingerprint_hex());
}

TEST(Folder, Sharded) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  folder.write("s1.safetensors", u8_tensors({"a", "b"}));
  folder.write("s2.safetensors", u8_tensors({"c", "unlisted"}));
  const auto index = [&](const std::string& map) {
    folder.write("model.safetensors.index.json", R"({"metadata":{},"weight_map":)" + map + "}");
    return open_checkpoint(folder.path());
  };
  const auto good = index(R"({"a":"s1.safetensors","b":"s1.safetensors","c":"s2.safetensors"})");
  ASSERT_TRUE(good.is_ok()) << good.status().message();
  EXPECT_EQ((*good)->tensors().size(), 3u);
  EXPECT_NE((*good)->find("c"), nullptr);
  expect_error(index(R"({"a":"s3.safetensors"})").status(), Code::kNotFound, {"s3.safetensors", "missing"});
  expect_error(index(R"({"zz":"s1.safetensors"})").status(), Code::kDataLoss, {"s1.safetensors", "'zz'"});
  for (const char* name : {"../s1.safetensors", "/etc/passwd", "x/y", "..", ".hidden", "", "a\\\\b"}) {
    expect_error(index(std::string(R"({"a":")") + name + "\"}").status(), Code::kInvalidArgument,
                 {"index.json", "plain file name"});
  }
  expect_error(index("{}").status(), Code::kInvalidArgument, {"weight_map"});
  expect_error(index("[]").status(), Code::kInvalidArgument, {"weight_map"});
  expect_error(index(R"({"a":1})").status(), Code::kInvalidArgument, {"'a'"});
  expect_error(index(R"({"a":"s1.safetensors","a":"s2.safetensors"})").status(), Code::kInvalidArgument,
               {"twice"});
}

TEST(Folder, SameContentsSameFingerprintWhereverTheyLie) {
  TempFolder one, two, sharded;
  for (const TempFolder* f : {&one, &two, &sharded}) f->write("config.json", kConfig);
  one.write("model.safetensors", u8_tensors({"a", "b"}));
  two.write("model.safetensors", u8_tensors({"b", "a"}));
  sharded.write("s1.safetensors", u8_tensors({"a"}));
  sharded.write("s2.safetensors", u8_tensors({"b"}));
  sharded.write("model.safetensors.index.json",
                R"({"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}})");
  const auto print = [](const TempFolder& f) { return (*open_checkpoint(f.path()))->fingerprint_hex(); };
  const std::string first = print(one);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(first, print(two));
  EXPECT_EQ(first, print(sharded));
  EXPECT_NE((*open_checkpoint(one.path()))->file_stamp(), (*open_checkpoint(two.path()))->file_stamp());
  std::string changed = u8_tensors({"a", "b"});
  changed.back() ^= 1;
  one.write("model.safetensors", changed);
  EXPECT_NE(first, print(one));
  two.write("tokenizer.json", "{}");
  EXPECT_NE(first, print(two));
  sharded.write("config.json", R"({"model_type":"llama"})");
  EXPECT_NE(first, print(sharded));
}

struct Wrong {
  const char* name;
  std::string contents;
  std::vector<std::string> words;
};
class WrongFile : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongFile, SaysWhatItLooksLike) {
  TempFolder folder;
  const std::string file = folder.write("model.gguf", GetParam().contents);
  std::vector<std::string> words = GetParam().words;
  words.push_back(file);
  expect_error(open_checkpoint(file).status(), Code::kInvalidArgument, words);
}

const Wrong kWrong[] = {
    {"Empty", "", {"empty"}},
    {"Html", "\n  <!DOCTYPE HTML>\n<html><body>Sign in</body></html>", {"HTML page"}},
    {"HtmlShort", "<html>", {"HTML page"}},
    {"LfsPointer",
     "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
     {"Git LFS", "git lfs pull"}},
    {"Zip", std::string("PK\x03\x04zzzz"), {"PyTorch", "safetensors"}},
    {"Pickle", std::string("\x80\x02}q\x00", 5), {"pickle"}},
    {"Ggml", "lmgg\x01", {"older than GGUF"}},
    {"Gzip", "\x1f\x8b\x08", {"gzip"}},
    {"Tar", std::string(257, 'a') + "ustar" + std::string(300, '\0'), {"tar"}},
    {"Json", "{\"model_type\": \"llama\"}", {"JSON", "folder"}},
    {"Text", "hello world\nmore", {"text", "hello world"}},
    {"Wasm", std::string("\0asm\1\0\0\0", 8), {"WebAssembly", "driftwood run"}},
    {"Bytes", std::string("\x01\x02\x03\x04", 4), {"01 02 03 04"}},
};
INSTANTIATE_TEST_SUITE_P(Files, WrongFile, ::testing::ValuesIn(kWrong),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(WrongFolder, SaysWhatIsMissing) {
  TempFolder folder;
  expect_error(open_checkpoint(folder.path() + "/none.gguf").status(), Code::kNotFound, {"none.gguf"});
  expect_error(open_checkpoint("").status(), Code::kInvalidArgument, {"empty"});
  expect_error(open_checkpoint(folder.path()).status(), Code::kNotFound, {"config.json"});
  const std::string alone = folder.write("w.safetensors", u8_tensors({"a"}));
  expect_error(open_checkpoint(alone).status(), Code::kNotFound, {"config.json beside it"});
  fs::remove(alone);
  folder.write("config.json", "<html>");
  expect_error(open_checkpoint(folder.path()).status(), Code::kInvalidArgument, {"config.json", "HTML"});
  folder.write("config.json", "{\"a\":");
  expect_error(open_checkpoint(folder.path()).status(), Code::kInvalidArgument, {"config.json", "JSON"});
  folder.write("config.json", "{\"a\":1,\"a\":2}");
  expect_error(open_checkpoint(folder.path()).status(), Code::kInvalidArgument, {"config.json", "twice"});
  folder.write("config.json", kConfig);
  expect_error(open_checkpoint(folder.path()).status(), Code::kNotFound, {"model.safetensors", "incomplete"});
  folder.write("pytorch_model.bin", "PK");
  expect_error(open_checkpoint(folder.path()).status(), Code::kNotFound, {"pytorch_model.bin", "pickle"});
  folder.write("m.gguf", "x");
  expect_error(open_checkpoint(folder.path()).status(), Code::kNotFound, {"m.gguf"});
  folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  expect_error(open_checkpoint(folder.path()).status(), Code::kInvalidArgument,
               {"model.safetensors", "git lfs pull"});
  fs::remove(folder.path() + "/model.safetensors");
  fs::create_symlink("../blobs/gone", folder.path() + "/model.safetensors");
  expect_error(open_checkpoint(folder.path()).status(), Code::kNotFound, {"model.safetensors"});
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  expect_error(open_checkpoint(folder.path() + "/pipe").status(), Code::kInvalidArgument, {"regular"});
  TempFolder cache;
  fs::create_directories(cache.path() + "/snapshots/abc");
  expect_error(open_checkpoint(cache.path()).status(), Code::kNotFound, {"snapshots"});
}

TEST(WrongFolder, OtherQuantisationsAreNamed) {
  TempFolder folder;
  folder.write("model.safetensors", u8_tensors({"a"}));
  for (const char* method : {"gptq", "awq", "mxfp4"}) {
    folder.write("config.json", std::string(R"({"quantization_config":{"quant_method":")") + method + "\"}}");
    expect_error(open_checkpoint(folder.path()).status(), Code::kUnimplemented, {method});
  }
  folder.write("config.json", R"({"quantization_config":null})");
  EXPECT_TRUE(open_checkpoint(folder.path()).is_ok());
}

TEST(Folder, WithOneGgufIsThatFile) {
  TempFolder folder;
  GgufParts p;
  p.keys = {u32_key("k", 5)};
  folder.write("m.gguf", p.build());
  const auto c = open_checkpoint(folder.path());
  ASSERT_TRUE(c.is_ok()) << c.status().message();
  EXPECT_EQ((*c)->format(), FileFormat::kGguf);
  EXPECT_EQ(metadata_int(**c, "k").value(), 5);
  EXPECT_EQ((*c)->side_file("tokenizer.json").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace driftwood::format
