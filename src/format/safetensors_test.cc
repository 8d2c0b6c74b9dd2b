#include "format/safetensors.h"

#include "format/test_files.h"

namespace driftwood::format {
namespace {

Status parse_status(const std::string& text) {
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  return parse_safetensors(bytes, "m.safetensors").status();
}

TEST(Safetensors, ReadsTensorsInDataOrder) {
  const std::string text = safetensors(
      R"({"__metadata__":{"format":"pt"},"z":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("a":{"dtype":"I64","shape":[],"data_offsets":[12,20]},"e":{"dtype":"F32","shape":[0,4],"data_offsets":[20,20]}} )",
      20);
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  const auto tensors = parse_safetensors(bytes, "m");
  ASSERT_TRUE(tensors.is_ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "z");
  EXPECT_EQ((*tensors)[0].dtype, DType::kBF16);
  EXPECT_EQ((*tensors)[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*tensors)[0].bytes.size(), 12u);
  EXPECT_EQ((*tensors)[1].bytes.data(), bytes.data() + bytes.size() - 8);
  EXPECT_TRUE((*tensors)[2].bytes.empty());
}

struct Bad {
  const char* name;
  std::string text;
  Code code;
  std::vector<std::string> words;
};

class SafetensorsErrors : public ::testing::TestWithParam<Bad> {};

TEST_P(SafetensorsErrors, AreNamed) {
  const Status status = parse_status(GetParam().text);
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_NE(status.message().find("m.safetensors"), std::string::npos) << status.message();
  for (const std::string& word : GetParam().words) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "'" << word << "' is not in: " << status.message();
  }
}

std::string one(const std::string& entry, size_t data = 16) {
  return safetensors("{\"t\":" + entry + "}", data);
}
std::string two(const std::string& a, const std::string& b) {
  return safetensors(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":)" + a +
                         R"(},"b":{"dtype":"U8","shape":[8],"data_offsets":)" + b + "}}",
                     16);
}
std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

constexpr auto kInvalid = Code::kInvalidArgument;
const Bad kBad[] = {
    {"Empty", "", Code::kDataLoss, {"empty"}},
    {"Short", "abc", Code::kDataLoss, {"text"}},
    {"HeaderPastEnd", Bytes().u64(1000).raw("{}      ").text(), Code::kDataLoss, {"1000 bytes", "truncated"}},
    {"HeaderHuge", Bytes().u64(UINT64_MAX).raw("{}      ").text(), kInvalid, {"18446744073709551615"}},
    {"HeaderZero", Bytes().u64(0).raw("{}      ").text(), kInvalid, {"not a safetensors file"}},
    {"Html", "<!DOCTYPE html><html></html>", kInvalid, {"HTML"}},
    {"Json", safetensors("{\"a\":", 0), kInvalid, {"JSON"}},
    {"Utf8", safetensors("{\"\xff\xfe\":1}", 0), kInvalid, {"JSON"}},
    {"DuplicateName",
     safetensors(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                 R"("a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})",
                 16),
     kInvalid,
     {"\"a\"", "twice"}},
    {"Deep", safetensors("{\"a\":" + nested(1000) + "}", 0), kInvalid, {"deeper"}},
    {"Metadata", safetensors(R"({"__metadata__":{"n":1}})", 0), kInvalid, {"__metadata__", "strings"}},
    {"EmptyName",
     safetensors(R"({"":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8),
     kInvalid,
     {"empty name"}},
    {"NotObject", one("3"), kInvalid, {"'t'", "object"}},
    {"MissingField", one(R"({"dtype":"F32","shape":[4]})"), kInvalid, {"'t'", "data_offsets"}},
    {"ExtraField",
     one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16],"x":1})"),
     kInvalid,
     {"nothing else"}},
    {"DtypeKind", one(R"({"dtype":32,"shape":[4],"data_offsets":[0,16]})"), kInvalid, {"\"dtype\""}},
    {"DtypeName", one(R"({"dtype":"F31","shape":[4],"data_offsets":[0,16]})"), kInvalid, {"'t'", "F31"}},
    {"DtypeUnread",
     one(R"({"dtype":"F8_E4M3","shape":[16],"data_offsets":[0,16]})"),
     Code::kUnimplemented,
     {"'t'", "F8_E4M3"}},
    {"ShapeKind", one(R"({"dtype":"F32","shape":4,"data_offsets":[0,16]})"), kInvalid, {"\"shape\""}},
    {"ShapeNegative", one(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})"), kInvalid, {"\"shape\""}},
    {"ShapeFraction", one(R"({"dtype":"F32","shape":[4.0],"data_offsets":[0,16]})"), kInvalid, {"\"shape\""}},
    {"ShapeHuge",
     one(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,16]})"),
     kInvalid,
     {"\"shape\""}},
    {"ShapeWraps",
     one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]})"),
     kInvalid,
     {"2^63"}},
    {"ShapeDeep",
     one(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,16],"data_offsets":[0,16]})"),
     kInvalid,
     {"9 dimensions"}},
    {"Length", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,16]})"), kInvalid, {"12 bytes", "16"}},
    {"OffsetsKind", one(R"({"dtype":"F32","shape":[4],"data_offsets":[0]})"), kInvalid, {"data_offsets"}},
    {"OffsetsNegative",
     one(R"({"dtype":"F32","shape":[4],"data_offsets":[-16,0]})"),
     kInvalid,
     {"data_offsets"}},
    {"OffsetsBackwards",
     one(R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})"),
     kInvalid,
     {"before they begin"}},
    {"PastEnd",
     one(R"({"dtype":"F32","shape":[8],"data_offsets":[0,32]})"),
     Code::kDataLoss,
     {"'t'", "past the end"}},
    {"Overlap", two("[0,8]", "[4,12]"), kInvalid, {"'b'", "overlaps", "'a'"}},
    {"SamePlace", two("[0,8]", "[0,8]"), kInvalid, {"overlaps"}},
    {"HoleBefore", one(R"({"dtype":"F32","shape":[3],"data_offsets":[4,16]})"), kInvalid, {"hole of 4"}},
    {"Trailing", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), kInvalid, {"4 bytes follow"}},
};

INSTANTIATE_TEST_SUITE_P(Files, SafetensorsErrors, ::testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace driftwood::format
