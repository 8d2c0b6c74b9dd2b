#include "format/gguf.h"

#include <functional>

#include "format/test_files.h"

namespace driftwood::format {
namespace {

Result<GgufContents> parse(const std::string& text, std::vector<uint8_t>* keep) {
  keep->assign(text.begin(), text.end());
  return parse_gguf(*keep, "m.gguf");
}

// Two tensors: F32 [2 rows, 8] of 64 bytes, Q4_0 [3 rows, 64] of 108 bytes.
GgufParts good() {
  GgufParts p;
  p.keys = {string_key("general.architecture", "llama"), u32_key("llama.block_count", 2)};
  p.tensors = {{"a", {8, 2}, 0, 0}, {"b", {64, 3}, 2, 64}};
  p.data_bytes = 64 + 128;
  return p;
}

std::string array_key(const std::string& name, int depth) {
  Bytes b;
  b.string(name).u32(9);
  for (int i = 1; i < depth; ++i) b.u32(9).u64(1);
  return b.u32(4).u64(2).u32(7).u32(8).text();
}

TEST(Gguf, ReadsTensorsOutermostFirst) {
  std::vector<uint8_t> keep;
  const auto c = parse(good().build(), &keep);
  ASSERT_TRUE(c.is_ok()) << c.status().message();
  ASSERT_EQ(c->tensors.size(), 2u);
  EXPECT_EQ(c->tensors[1].name, "b");
  EXPECT_EQ(c->tensors[1].shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(c->tensors[1].encoding, Encoding::kQ4_0);
  EXPECT_EQ(c->tensors[1].bytes.size(), 108u);
  EXPECT_EQ(c->tensors[1].bytes[0], static_cast<uint8_t>(64 * 37 + 11));
  EXPECT_EQ(c->tensors[0].encoding, Encoding::kDense);
  EXPECT_EQ(c->tensors[0].dtype, DType::kF32);
}

TEST(Gguf, ReadsEveryValueType) {
  GgufParts p;
  p.version = 2;
  p.keys = {
      Bytes().string("u8").u32(0).number<uint8_t>(250).text(),
      Bytes().string("i8").u32(1).number<int8_t>(-5).text(),
      Bytes().string("u16").u32(2).number<uint16_t>(65000).text(),
      Bytes().string("i16").u32(3).number<int16_t>(-3000).text(),
      u32_key("u32", 4000000000u),
      Bytes().string("i32").u32(5).number<int32_t>(-70000).text(),
      Bytes().string("f32").u32(6).number<float>(1.5f).text(),
      Bytes().string("bool").u32(7).number<uint8_t>(1).text(),
      string_key("string", "text"),
      Bytes().string("u64").u32(10).u64(UINT64_MAX).text(),
      Bytes().string("i64").u32(11).number<int64_t>(-1).text(),
      Bytes().string("f64").u32(12).number<double>(0.1).text(),
      array_key("nested", 3),
  };
  std::vector<uint8_t> keep;
  auto parsed = parse(p.build(), &keep);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  auto& m = parsed->metadata;
  using Kind = MetadataValue::Kind;
  EXPECT_EQ(m["u8"].unsigned_integer, 250u);
  EXPECT_EQ(m["i8"].integer, -5);
  EXPECT_EQ(m["u16"].integer, 65000);
  EXPECT_EQ(m["i16"].integer, -3000);
  EXPECT_EQ(m["u32"].integer, 4000000000);
  EXPECT_EQ(m["u32"].kind, Kind::kUint);
  EXPECT_EQ(m["i32"].number, -70000.0);
  EXPECT_EQ(m["f32"].number, 1.5);
  EXPECT_TRUE(m["bool"].boolean);
  EXPECT_EQ(m["string"].string, "text");
  EXPECT_EQ(m["u64"].unsigned_integer, UINT64_MAX);
  EXPECT_EQ(m["i64"].integer, -1);
  EXPECT_EQ(m["f64"].number, 0.1);
  EXPECT_EQ(m["nested"].array.at(0).array.at(0).array.at(1).integer, 8);
}

struct Bad {
  const char* name;
  std::function<void(GgufParts&)> change;
  Code code;
  std::vector<std::string> words;  // all in the message
};

class GgufErrors : public ::testing::TestWithParam<Bad> {};

TEST_P(GgufErrors, AreNamed) {
  GgufParts p = good();
  GetParam().change(p);
  std::vector<uint8_t> keep;
  const Status status = parse(p.build(), &keep).status();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_NE(status.message().find("m.gguf"), std::string::npos) << status.message();
  for (const std::string& word : GetParam().words) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "'" << word << "' is not in: " << status.message();
  }
}

constexpr auto kInvalid = Code::kInvalidArgument;

const Bad kBad[] = {
    {"Magic", [](auto& p) { p.magic = "GGUX"; }, kInvalid, {"not a GGUF"}},
    {"OldGgml", [](auto& p) { p.magic = "tjgg"; }, kInvalid, {"older than GGUF"}},
    {"Version0", [](auto& p) { p.version = 0; }, Code::kUnimplemented, {"version 0"}},
    {"Version1", [](auto& p) { p.version = 1; }, Code::kUnimplemented, {"version 1"}},
    {"Version4", [](auto& p) { p.version = 4; }, Code::kUnimplemented, {"version 4"}},
    {"BigEndian", [](auto& p) { p.version = 0x03000000; }, Code::kUnimplemented, {"big-endian"}},
    {"TensorCount", [](auto& p) { p.tensor_count = INT64_MAX; }, kInvalid, {"tensors"}},
    {"KeyCount", [](auto& p) { p.key_count = INT64_MAX; }, kInvalid, {"metadata keys"}},
    {"TooManyKeysClaimed", [](auto& p) { p.key_count = 60000; }, Code::kInvalidArgument, {"metadata key"}},
    {"TensorsMissing", [](auto& p) { p.tensor_count = 1000; }, Code::kInvalidArgument, {"tensor 2"}},
    {"EmptyKey", [](auto& p) { p.keys.push_back(u32_key("", 1)); }, kInvalid, {"key 2", "0 bytes"}},
    {"LongKey", [](auto& p) { p.keys.push_back(u32_key(std::string(65536, 'k'), 1)); }, kInvalid, {"65536"}},
    {"ControlKey", [](auto& p) { p.keys.push_back(u32_key("a\nb", 1)); }, kInvalid, {"control"}},
    {"DuplicateKey", [](auto& p) { p.keys.push_back(p.keys[1]); }, kInvalid, {"llama.block_count", "twice"}},
    {"ValueType",
     [](auto& p) { p.keys.push_back(Bytes().string("k").u32(13).u64(0).text()); },
     kInvalid,
     {"'k'", "type 13"}},
    {"ArrayType",
     [](auto& p) { p.keys.push_back(Bytes().string("k").u32(9).u32(77).u64(0).text()); },
     kInvalid,
     {"'k'", "type 77"}},
    {"ArrayLength",
     [](auto& p) { p.keys.push_back(Bytes().string("k").u32(9).u32(4).u64(1u << 30).text()); },
     Code::kDataLoss,
     {"'k'", "1073741824 values"}},
    {"ArrayLengthWraps",
     [](auto& p) { p.keys.push_back(Bytes().string("k").u32(9).u32(10).u64(UINT64_MAX / 8 + 2).text()); },
     Code::kDataLoss,
     {"'k'"}},
    {"ArrayDepth", [](auto& p) { p.keys.push_back(array_key("k", 5)); }, kInvalid, {"'k'", "deeper than 4"}},
    {"StringLength",
     [](auto& p) { p.keys.push_back(Bytes().string("k").u32(8).u64(UINT64_MAX).raw("x").text()); },
     Code::kDataLoss,
     {"'k'", "string claims"}},
    {"Bool",
     [](auto& p) { p.keys.push_back(Bytes().string("k").u32(7).raw("\x02").text()); },
     kInvalid,
     {"'k'", "bool"}},
    {"AlignmentZero", [](auto& p) { p.keys.push_back(u32_key("general.alignment", 0)); }, kInvalid, {"is 0"}},
    {"AlignmentOdd",
     [](auto& p) { p.keys.push_back(u32_key("general.alignment", 48)); },
     kInvalid,
     {"is 48"}},
    {"AlignmentSmall",
     [](auto& p) { p.keys.push_back(u32_key("general.alignment", 4)); },
     kInvalid,
     {"is 4"}},
    {"AlignmentHuge",
     [](auto& p) { p.keys.push_back(u32_key("general.alignment", 1u << 31)); },
     kInvalid,
     {"2147483648"}},
    {"AlignmentKind",
     [](auto& p) { p.keys.push_back(string_key("general.alignment", "32")); },
     kInvalid,
     {"unsigned"}},
    {"Split",
     [](auto& p) { p.keys.push_back(u32_key("split.count", 3)); },
     Code::kUnimplemented,
     {"split in 3"}},
    {"DimZero", [](auto& p) { p.tensors[0].dims = {0, 2}; }, kInvalid, {"'a'", "dimension 0 is 0"}},
    {"DimNegative",
     [](auto& p) { p.tensors[0].dims = {8, UINT64_MAX}; },
     kInvalid,
     {"'a'", "dimension 1 is -1"}},
    {"DimsWrap",
     [](auto& p) { p.tensors[0].dims = {1u << 31, 1u << 31, 1u << 31}; },
     kInvalid,
     {"'a'", "2^63"}},
    {"BytesWrap",
     [](auto& p) { p.tensors[0].dims = {uint64_t{1} << 40, 1u << 22}; },
     kInvalid,
     {"'a'", "2^63"}},
    {"NoDims", [](auto& p) { p.tensors[0].dims = {}; }, kInvalid, {"'a'", "0 dimensions"}},
    {"FiveDims", [](auto& p) { p.tensors[0].dims = {1, 1, 1, 1, 1}; }, kInvalid, {"'a'", "5 dimensions"}},
    {"BlockMultiple", [](auto& p) { p.tensors[1].dims = {48, 4}; }, kInvalid, {"'b'", "48", "Q4_0", "32"}},
    {"OffsetMisaligned", [](auto& p) { p.tensors[1].offset = 72; }, kInvalid, {"'b'", "aligned to 32"}},
    {"OffsetPastEnd",
     [](auto& p) { p.tensors[1].offset = uint64_t{1} << 40; },
     Code::kDataLoss,
     {"'b'", "past"}},
    {"OffsetWraps", [](auto& p) { p.tensors[1].offset = UINT64_MAX - 31; }, Code::kDataLoss, {"'b'", "past"}},
    {"SizePastEnd", [](auto& p) { p.tensors[1].dims = {64, 30}; }, Code::kDataLoss, {"'b'", "1080 bytes"}},
    {"Overlap", [](auto& p) { p.tensors[1].offset = 32; }, kInvalid, {"'b'", "overlaps", "'a'"}},
    {"SameOffset", [](auto& p) { p.tensors[1].offset = 0; }, kInvalid, {"overlaps"}},
    {"HoleBefore",
     [](auto& p) {
       p.tensors[0].offset = 192;
       p.data_bytes = 300;
     },
     kInvalid,
     {"hole of 64"}},
    {"HoleBetween",
     [](auto& p) {
       p.tensors[1].offset = 96;
       p.data_bytes = 256;
     },
     kInvalid,
     {"'b'", "hole of 32"}},
    {"Trailing", [](auto& p) { p.data_bytes += 64; }, kInvalid, {"follow the last tensor"}},
    {"DuplicateTensor", [](auto& p) { p.tensors[1].name = "a"; }, kInvalid, {"'a'", "twice"}},
    {"EmptyTensorName", [](auto& p) { p.tensors[1].name = ""; }, kInvalid, {"tensor 1", "0 bytes"}},
    {"LongTensorName", [](auto& p) { p.tensors[1].name = std::string(256, 'n'); }, kInvalid, {"256 bytes"}},
    {"Q6K", [](auto& p) { p.tensors[1].type = 14; }, Code::kUnimplemented, {"'b'", "Q6_K"}},
    {"MxFp4", [](auto& p) { p.tensors[1].type = 39; }, Code::kUnimplemented, {"'b'", "MXFP4"}},
    {"I32", [](auto& p) { p.tensors[1].type = 26; }, Code::kUnimplemented, {"'b'", "I32"}},
    {"UnknownType", [](auto& p) { p.tensors[1].type = 4; }, Code::kUnimplemented, {"'b'", "type number 4"}},
};

INSTANTIATE_TEST_SUITE_P(Files, GgufErrors, ::testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Gguf, EveryTruncationIsAnError) {
  GgufParts p = good();
  p.keys.push_back(array_key("deep", 3));
  const std::string whole = p.build();
  std::vector<uint8_t> keep;
  ASSERT_TRUE(parse(whole, &keep).is_ok());
  const size_t needed = whole.size() - 20;  // the last tensor's padding may be missing
  ASSERT_TRUE(parse(whole.substr(0, needed), &keep).is_ok());
  for (size_t length = 0; length < needed; ++length) {
    const Status status = parse(whole.substr(0, length), &keep).status();
    ASSERT_FALSE(status.is_ok()) << length;
    const Code expected = length < 4 ? Code::kInvalidArgument : Code::kDataLoss;
    ASSERT_EQ(status.code(), expected) << length << ": " << status.message();
  }
}

TEST(Gguf, OtherAlignmentsAndTensorOrdersAreRead) {
  GgufParts p = good();
  p.alignment = 64;
  p.keys.push_back(u32_key("general.alignment", 64));
  p.tensors = {{"b", {64, 3}, 2, 64}, {"a", {8, 2}, 0, 0}};
  p.data_bytes = 64 + 108;  // no padding at the end
  std::vector<uint8_t> keep;
  const auto c = parse(p.build(), &keep);
  ASSERT_TRUE(c.is_ok()) << c.status().message();
  EXPECT_EQ(c->alignment, 64u);
  EXPECT_EQ(c->tensors[0].bytes.data() - c->tensors[1].bytes.data(), 64);
}

}  // namespace
}  // namespace driftwood::format
