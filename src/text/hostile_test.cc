// Vocabularies and templates that are wrong, by accident or by intent: a clear error, and quickly.
#include <chrono>

#include <gtest/gtest.h>

#include "text/fake_checkpoint_test.h"
#include "text/tokenizer.h"

namespace driftwood::text {
namespace {

using format::FileFormat;

// Spelling of a byte in a byte-level vocabulary (GPT-2's table): printable Latin-1 stands for itself.
std::string byte_spelling(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 255 && b != 173); };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

std::vector<std::string> small_vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_spelling(byte));
  tokens.push_back("he");
  tokens.push_back("<|im_end|>");
  tokens.push_back("<|end|>");
  return tokens;
}

FakeCheckpoint small_gguf() {
  FakeCheckpoint gguf(FileFormat::kGguf);
  gguf.keys["tokenizer.ggml.model"] = meta_text("gpt2");
  gguf.keys["tokenizer.ggml.pre"] = meta_text("gpt-2");
  gguf.keys["tokenizer.ggml.tokens"] = meta_texts(small_vocabulary());
  format::MetadataArray types(small_vocabulary().size(), meta_int(1));
  types[257] = types[258] = meta_int(3);
  gguf.keys["tokenizer.ggml.token_type"] = meta_array(std::move(types));
  gguf.keys["tokenizer.ggml.merges"] = meta_texts({"h e"});
  gguf.keys["tokenizer.ggml.eos_token_id"] = meta_int(257);
  return gguf;
}

Status tokenizer_error(const FakeCheckpoint& checkpoint, const std::string& part) {
  const auto made = Tokenizer::from_checkpoint(checkpoint);
  EXPECT_FALSE(made.is_ok()) << part;
  if (made.is_ok()) return Status::ok();
  EXPECT_NE(made.status().message().find(part), std::string::npos) << made.status().to_string();
  return made.status();
}

TEST(Vocabulary, ASmallOneWorks) {
  const auto made = Tokenizer::from_checkpoint(small_gguf());
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  const Tokenizer& tokenizer = **made;
  EXPECT_EQ(*tokenizer.encode("hey<|im_end|>", {.parse_special = true}),
            (std::vector<int32_t>{256, 'y', 257}));
  EXPECT_EQ(tokenizer.end_tokens(), (std::vector<int32_t>{257, 258}));
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
  EXPECT_EQ(*tokenizer.token_bytes(255), "\xFF");
  EXPECT_FALSE(tokenizer.token_bytes(259).is_ok());
  EXPECT_FALSE(tokenizer.token_bytes(-1).is_ok());
  EXPECT_EQ(tokenizer.encode("\xFF", {}).status().code(), Code::kInvalidArgument);
  const int32_t negative = -1;
  EXPECT_EQ(tokenizer.decode(&negative, 1, false).status().code(), Code::kInvalidArgument);
}

TEST(Vocabulary, InconsistentOnesAreRefused) {
  FakeCheckpoint gguf = small_gguf();
  std::vector<std::string> tokens = small_vocabulary();
  tokens[100] = "he";
  gguf.keys["tokenizer.ggml.tokens"] = meta_texts(tokens);
  EXPECT_EQ(tokenizer_error(gguf, "spells 'he' twice, as tokens 100 and 256").code(), Code::kInvalidArgument);

  gguf = small_gguf();
  gguf.keys["tokenizer.ggml.merges"] = meta_texts({"h e", "he y"});
  EXPECT_EQ(tokenizer_error(gguf, "entry 1, 'he y', makes 'hey', which is no token").code(),
            Code::kInvalidArgument);
  tokens = small_vocabulary();
  tokens[100] = "Xhe";
  gguf.keys["tokenizer.ggml.tokens"] = meta_texts(tokens);
  gguf.keys["tokenizer.ggml.merges"] = meta_texts({"h e", "X he"});
  EXPECT_TRUE(Tokenizer::from_checkpoint(gguf).is_ok());
  gguf.keys["tokenizer.ggml.merges"] = meta_texts({"h e", "Xh e"});
  EXPECT_EQ(tokenizer_error(gguf, "needs 'Xh', which is no token").code(), Code::kInvalidArgument);
  gguf.keys["tokenizer.ggml.merges"] = meta_texts({"he"});
  EXPECT_EQ(tokenizer_error(gguf, "not two tokens").code(), Code::kInvalidArgument);
  gguf.keys["tokenizer.ggml.merges"] = meta_texts({""});
  EXPECT_EQ(tokenizer_error(gguf, "not two tokens").code(), Code::kInvalidArgument);

  gguf = small_gguf();
  gguf.keys["tokenizer.ggml.token_type"] = meta_array({meta_int(1)});
  EXPECT_EQ(tokenizer_error(gguf, "token_type").code(), Code::kInvalidArgument);
  gguf = small_gguf();
  gguf.keys["tokenizer.ggml.tokens"] = meta_array({meta_int(1)});
  EXPECT_EQ(tokenizer_error(gguf, "tokens holds something other").code(), Code::kInvalidArgument);
  gguf = small_gguf();
  gguf.keys["tokenizer.ggml.eos_token_id"] = meta_int(100000);
  EXPECT_EQ(tokenizer_error(gguf, "eos_id").code(), Code::kInvalidArgument);
  gguf = small_gguf();
  gguf.keys["tokenizer.ggml.pre"] = meta_text("no-such-family");
  EXPECT_EQ(tokenizer_error(gguf, "no-such-family").code(), Code::kInvalidArgument);
}

TEST(Vocabulary, AbsentOrOfAnotherKind) {
  FakeCheckpoint gguf(FileFormat::kGguf);
  EXPECT_EQ(tokenizer_error(gguf, "no tokenizer").code(), Code::kNotFound);
  gguf.keys["tokenizer.ggml.model"] = meta_text("llama");
  EXPECT_EQ(tokenizer_error(gguf, "'llama'").code(), Code::kUnimplemented);
  FakeCheckpoint folder(FileFormat::kHuggingFace);
  EXPECT_EQ(tokenizer_error(folder, "tokenizer.json").code(), Code::kNotFound);
  folder.files["tokenizer.json"] = "{\"model\": 3";
  EXPECT_EQ(tokenizer_error(folder, "tokenizer.json").code(), Code::kInvalidArgument);
}

// A WordLevel tokenizer is the smallest that tokenizer.json can hold.
TEST(Folder, SpecialTokensComeFromAllFiles) {
  FakeCheckpoint folder(FileFormat::kHuggingFace);
  folder.files["tokenizer.json"] =
      R"({"version":"1.0","added_tokens":[)"
      R"({"id":1,"content":"<|im_end|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},)"
      R"({"id":4,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],)"
      R"("normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,"truncation":null,)"
      R"("padding":null,"model":{"type":"WordLevel","vocab":{"<unk>":0,"<|im_end|>":1,"hello":2,"stop":3,"</s>":4},)"
      R"("unk_token":"<unk>"}})";
  folder.files["tokenizer_config.json"] = R"({"bos_token":null,"eos_token":{"content":"</s>"}})";
  folder.files["generation_config.json"] = R"({"eos_token_id":[3,77,-1,3]})";
  folder.keys["bos_token_id"] = meta_int(2);
  const auto made = Tokenizer::from_checkpoint(folder);
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_EQ((*made)->end_tokens(), (std::vector<int32_t>{3, 4, 1}));
  EXPECT_EQ((*made)->bos(), 2);
  folder.files["generation_config.json"] = "[]";
  EXPECT_EQ(tokenizer_error(folder, "generation_config.json").code(), Code::kInvalidArgument);
}

FakeCheckpoint with_template(const std::string& source) {
  FakeCheckpoint gguf(FileFormat::kGguf);
  gguf.keys["tokenizer.chat_template"] = meta_text(source);
  return gguf;
}

Result<std::string> rendered(const FakeCheckpoint& checkpoint, std::string_view messages,
                             std::string_view tools = "") {
  DW_ASSIGN_OR_RETURN(const auto made, ChatTemplate::from_checkpoint(checkpoint));
  return made->render(messages, true, tools);
}

TEST(Template, SeesItsVariables) {
  FakeCheckpoint gguf = with_template(
      "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m['content'] }};{% endfor %}"
      "{{ eos_token }}{% if tools is none %}-{% else %}{{ tools | length }}{% endif %}{{ "
      "add_generation_prompt }}");
  gguf.keys["tokenizer.ggml.tokens"] = meta_texts({"<s>", "\"</s>\\"});
  gguf.keys["tokenizer.ggml.bos_token_id"] = meta_int(0);
  gguf.keys["tokenizer.ggml.eos_token_id"] = meta_int(1);
  const std::string messages = R"([{"role":"user","content":"a\"b"}])";
  EXPECT_EQ(*rendered(gguf, messages), "<s>user:a\"b;\"</s>\\-True");
  EXPECT_EQ(*rendered(gguf, messages, "[{}, {}]"), "<s>user:a\"b;\"</s>\\2True");
  gguf.keys["tokenizer.chat_template.tool_use"] = meta_text("tools");
  EXPECT_EQ(*rendered(gguf, messages, "[{}]"), "tools");
  EXPECT_NE(*rendered(gguf, messages), "tools");
}

TEST(Template, FolderPlaces) {
  FakeCheckpoint folder(FileFormat::kHuggingFace);
  EXPECT_EQ(rendered(folder, "[]").status().code(), Code::kNotFound);
  folder.files["tokenizer_config.json"] =
      R"({"chat_template":"{{ bos_token }}one","bos_token":{"content":"<b>"}})";
  EXPECT_EQ(*rendered(folder, "[]"), "<b>one");
  folder.files["tokenizer_config.json"] =
      R"({"chat_template":[{"name":"default","template":"two"},{"name":"tool_use","template":"three"}]})";
  EXPECT_EQ(*rendered(folder, "[]"), "two");
  EXPECT_EQ(*rendered(folder, "[]", "[1]"), "three");
  folder.files["chat_template.jinja"] = "four";
  EXPECT_EQ(*rendered(folder, "[]"), "four");
  folder.files.erase("chat_template.jinja");
  for (const char* bad :
       {R"({"chat_template":7})", R"({"chat_template":[{"name":"default"}]})", "nonsense"}) {
    folder.files["tokenizer_config.json"] = bad;
    EXPECT_EQ(rendered(folder, "[]").status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST(Template, TheContextCannotBeForged) {
  const FakeCheckpoint gguf = with_template("{{ messages | length }}");
  for (const char* messages : {"", "{}", "[", "[],\"tools\":[]", "[] []", "1", "[\"\xFF\"]"}) {
    EXPECT_EQ(rendered(gguf, messages).status().code(), Code::kInvalidArgument) << messages;
  }
  EXPECT_EQ(rendered(gguf, "[]", "{}").status().code(), Code::kInvalidArgument);
  const std::string deep(200000, '[');
  EXPECT_FALSE(rendered(gguf, deep + std::string(200000, ']')).is_ok());
}

TEST(Template, HostileOnesEndWithAnError) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(rendered(with_template(std::string(100 << 20, 'x')), "[]").status().message().find("104857600"),
            std::string::npos);
  const char* endless =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% "
      "endfor %}"
      "{% endfor %}";
  for (const std::string source :
       {endless, "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}", "{% if %}",
        "{{ raise_exception('no system role') }}", "{{ messages[0].content.x.y }}"}) {
    const auto result = rendered(with_template(source), "[]");
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument) << source;
    EXPECT_NE(result.status().message().find("fake.gguf: chat template"), std::string::npos)
        << result.status().message();
  }
  EXPECT_NE(rendered(with_template("{{ raise_exception('no system role') }}"), "[]")
                .status()
                .message()
                .find("no system role"),
            std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace driftwood::text
