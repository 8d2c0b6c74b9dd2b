#include "snapshot/reader.h"

#include <cstdlib>

#include "format/safetensors.h"
#include "snapshot/header_scan.h"
#include "snapshot/test_snapshots.h"

namespace driftwood::snapshot {
namespace {

// A snapshot of 192 KiB whose file is kept as bytes: a KV-like tensor in two pieces and an empty one.
struct GoldenSnapshot {
  Bytes blocks = pattern(49152, 7);
  SnapshotContents contents;
  GoldenSnapshot() {
    contents.identity = test_identity();
    contents.origin = {"", 1'234'567'890, {{"purpose", "golden file of format 0"}}};
    SectionTensor kv{
        {"blocks", DType::kF16, {3, 8192}, "[block][layer](k[head][dim][token],v[head][token][dim])", 16384},
        {}};
    for (size_t i = 0; i < 3; ++i) kv.chunks.push_back(ByteSpan(blocks).subspan(i * 16384, 16384));
    SectionTensor ids{{"ids", DType::kI32, {0}, "[token]"}, {}};
    contents.sections = {
        {{"session.0",
          "session",
          {{"tokens", "96"}, {"layers", "2"}, {"kv_heads", "2"}, {"head_dim", "32"}, {"block_tokens", "32"}}},
         {ids, kv}}};
  }
};

const std::string kGolden = std::string(DW_TESTDATA) + "/format0.safetensors";

TEST(Reader, GivesBackWhatWasWritten) {
  const TempFolder folder;
  const TestSnapshot made;
  const auto written = write_snapshot(folder / "s", made.contents);
  ASSERT_TRUE(written.is_ok()) << written.status().message();
  const auto opened = Snapshot::open(folder / "s");
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Snapshot& s = **opened;
  EXPECT_EQ(s.hash(), written->hash);
  EXPECT_EQ(s.file_bytes(), written->file_bytes);
  EXPECT_EQ(std::filesystem::file_size(folder / "s"), written->file_bytes);
  EXPECT_TRUE(identity_differences(s.identity(), made.contents.identity).empty());
  EXPECT_EQ(s.origin().parent, made.contents.origin.parent);
  EXPECT_EQ(s.origin().created_ns, made.contents.origin.created_ns);
  EXPECT_EQ(s.origin().notes, made.contents.origin.notes);
  ASSERT_EQ(s.sections().size(), 3U);
  EXPECT_EQ(s.sections()[0].kind, "linear_memory");
  EXPECT_EQ(s.sections()[0].attributes.at("pages"), "2");
  const StoredTensor* pages = s.find("memory")->find("pages");
  EXPECT_EQ(Bytes(pages->bytes.begin(), pages->bytes.end()), made.memory);
  EXPECT_EQ(pages->piece_hashes.size(), 8 * sizeof(Digest));
  const StoredTensor* table = s.find("globals")->find("table");
  EXPECT_EQ(Bytes(table->bytes.begin(), table->bytes.end()), made.odd);
  EXPECT_EQ(table->shape, (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(table->layout, "[row][column]");
  EXPECT_EQ(s.find("mailbox")->find("none")->shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(s.find("mailbox")->find("none")->bytes.size(), 0U);
  EXPECT_EQ(s.find("other"), nullptr);
  EXPECT_EQ(s.find("memory")->find("other"), nullptr);
  EXPECT_TRUE(s.verify_contents(1).is_ok());
  EXPECT_TRUE(s.verify_contents(3).is_ok());
  EXPECT_TRUE(s.verify_tensor(*table).is_ok());
}

TEST(Reader, OffsetsAreWhereTheBytesAreInTheFile) {
  const TempFolder folder;
  ASSERT_TRUE(write_snapshot(folder / "s", TestSnapshot().contents).is_ok());
  const Bytes raw = read_bytes(folder / "s");
  const auto opened = Snapshot::open(folder / "s");
  ASSERT_TRUE(opened.is_ok());
  EXPECT_EQ((*opened)->file()->path(), folder / "s");
  for (const StoredSection& section : (*opened)->sections()) {
    for (const StoredTensor& t : section.tensors) {
      EXPECT_EQ(t.file_offset % kUnitBytes, 0U) << t.full_name;
      EXPECT_EQ(t.extent_bytes % kUnitBytes, 0U) << t.full_name;
      ASSERT_LE(t.file_offset + t.extent_bytes, raw.size());
      EXPECT_TRUE(std::equal(t.bytes.begin(), t.bytes.end(),
                             raw.begin() + static_cast<std::ptrdiff_t>(t.file_offset)));
    }
  }
}

TEST(Reader, AnySafetensorsReaderSeesTheTensors) {
  const Bytes file = TestSnapshot().write();
  const auto tensors = format::parse_safetensors(file, "t");
  ASSERT_TRUE(tensors.is_ok()) << tensors.status().message();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& t : *tensors) shapes[t.name] = t.shape;
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"memory.pages", {2, 65536}},
      {"memory.pages.hashes", {2048, 32}},
      {"globals.values", {8192}},
      {"globals.table", {16384}},  // 12 does not divide 64 KiB
      {"mailbox.none", {0, 4}}};
  EXPECT_EQ(shapes, expected);
}

TEST(Reader, GoldenFileIsReadAndWrittenAsItWas) {
  const GoldenSnapshot made;
  const TempFolder folder;
  ASSERT_TRUE(write_snapshot(folder / "s", made.contents).is_ok());
  // How the file was made; after that it never changes but with the format.
  if (std::getenv("DRIFTWOOD_MAKE_GOLDEN") != nullptr) std::filesystem::copy_file(folder / "s", kGolden);
  const auto golden = Snapshot::open(kGolden);
  ASSERT_TRUE(golden.is_ok()) << golden.status().message();
  EXPECT_TRUE((*golden)->verify_contents().is_ok());
  EXPECT_TRUE((*golden)->check_identity(test_identity()).is_ok());
  const StoredTensor* kv = (*golden)->find("session.0")->find("blocks");
  EXPECT_EQ(Bytes(kv->bytes.begin(), kv->bytes.end()), made.blocks);
  EXPECT_EQ(kv->shape, (std::vector<int64_t>{3, 8192}));
  EXPECT_EQ(read_bytes(folder / "s"), read_bytes(kGolden))
      << "the writer's bytes changed: that is a new format";
}

TEST(Reader, IdentityNamesEveryFieldWithBothValues) {
  const Bytes file = TestSnapshot().write();
  const auto snapshot = Snapshot::parse(file, "t");
  ASSERT_TRUE(snapshot.is_ok());
  EXPECT_TRUE((*snapshot)->check_identity(test_identity()).is_ok());
  for (const IdentityField& field : identity_fields()) {
    Identity other = test_identity();
    other.*field.value = "other " + std::string(field.name);
    const Status status = (*snapshot)->check_identity(other);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_TRUE(holds(status, field.name)) << status.message();
    EXPECT_TRUE(holds(status, "\"" + test_identity().*field.value + "\" in the snapshot"))
        << status.message();
    EXPECT_TRUE(holds(status, "\"other " + std::string(field.name) + "\" here")) << status.message();
    const std::string_view exempt[] = {field.name};
    EXPECT_TRUE((*snapshot)->check_identity(other, exempt).is_ok());
  }
  Identity two = test_identity();
  two.numerics_id = "cuda-sm90-1";
  two.rope = "theta=1";
  const std::string_view numerics[] = {"numerics_id"};
  const Status status = (*snapshot)->check_identity(two, numerics);
  EXPECT_TRUE(holds(status, "rope")) << status.message();
  EXPECT_FALSE(holds(status, "numerics_id")) << status.message();
}

TEST(Reader, OtherFormatNumberIsNamed) {
  for (const std::string number : {"1", "7", "10", "00", "", "x"}) {
    // A later format may change everything behind the number, the place of the hash included.
    Bytes file = TestSnapshot().write();
    const std::string start = std::string(kHeaderStart) + number + "\",\"anything\":1";
    std::memcpy(file.data() + 8, start.data(), start.size());
    const auto snapshot = Snapshot::parse(file, "t");
    ASSERT_FALSE(snapshot.is_ok());
    EXPECT_EQ(snapshot.status().code(), Code::kFailedPrecondition);
    EXPECT_TRUE(holds(snapshot.status(), "snapshot format " + number + ", this program reads format 0"))
        << snapshot.status().message();
  }
}

TEST(Reader, FilesOfAnotherKindAreRefused) {
  EXPECT_EQ(check_all({}).code(), Code::kDataLoss);
  EXPECT_TRUE(holds(check_all({}), "is empty"));
  const std::string plain = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
  Bytes file(8 + plain.size() + 1, 0);
  file[0] = static_cast<uint8_t>(plain.size());
  std::memcpy(file.data() + 8, plain.data(), plain.size());
  EXPECT_EQ(check_all(file).code(), Code::kInvalidArgument);
  EXPECT_TRUE(holds(check_all(file), "but not a snapshot")) << check_all(file).message();
  EXPECT_EQ(check_all(pattern(100, 5)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Snapshot::open("/no/such/file").status().code(), Code::kNotFound);
  EXPECT_EQ(Snapshot::open("/tmp").status().code(), Code::kInvalidArgument);
}

std::string_view header_text(const Bytes& file) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), data_start(file)).substr(8);
}

void expect_same(const Header& a, const Header& b) {
  for (const IdentityField& field : identity_fields())
    EXPECT_EQ(a.identity.*field.value, b.identity.*field.value);
  EXPECT_EQ(a.origin.parent, b.origin.parent);
  EXPECT_EQ(a.origin.created_ns, b.origin.created_ns);
  EXPECT_EQ(a.origin.notes, b.origin.notes);
  const auto first = encode_header(a, "a");
  const auto second = encode_header(b, "b");
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_EQ(first->bytes, second->bytes);
}

TEST(Reader, HeadersThatWeWroteAreScannedAndReadAsTheGeneralParserReadsThem) {
  TestSnapshot plain;
  plain.contents.origin.notes = {{"a", "line\n\t\"quoted\" \\ / \x01"}, {"b", ""}};
  for (const Bytes& file : {plain.write(), read_bytes(kGolden)}) {
    const auto scanned = scan_header(header_text(file), "t");
    ASSERT_TRUE(scanned.has_value());
    DecodedHeader start;
    start.data_start = data_start(file);
    const auto general = decode_any_spelling(file, "t", std::move(start));
    ASSERT_TRUE(general.is_ok()) << general.status().message();
    expect_same(scanned->header, general->header);
  }
}

TEST(Reader, OtherSpellingsAreReadByTheGeneralParser) {
  const Bytes file = TestSnapshot().write();  // a note beyond ASCII
  EXPECT_FALSE(scan_header(header_text(file), "t").has_value());
  EXPECT_TRUE(check_all(file).is_ok());
  const Bytes spaced = edited(file, "\"parent\":\"", "\"parent\": \"");
  EXPECT_FALSE(scan_header(header_text(spaced), "t").has_value());
  EXPECT_TRUE(check_all(spaced).is_ok()) << check_all(spaced).message();
}

struct Edit {
  const char* from;
  const char* to;
  const char* message;
};

// Headers with a right hash and a wrong structure: somebody's own writer, or somebody's intent.
TEST(Reader, BrokenStructureIsRefusedDespiteARightHash) {
  const Bytes file = TestSnapshot().write();
  const Edit edits[] = {
      {"[0,131072]", "[0,131071]", "data_offsets"},                   // size against shape
      {"[131072,196608]", "[65536,131072]", "overlaps"},              // overlap
      {"[131072,196608]", "[196608,262144]", "hole"},                 // hole
      {"\"memory.pages\":", "\"memory.rages\":", "not in the file"},  // directory against table
      {"\"dtype\":\"U64\",\"shape\":[8192]", "\"dtype\":\"I64\",\"shape\":[8192]", "'globals.values'"},
      {"\"shape\":[8192]", "\"shape\":[4096,2]", "'globals.values'"},
      {"\\\"shape\\\":[3]", "\\\"shape\\\":[9000]", "'globals.values'"},
      {"\\\"shape\\\":[3]", "\\\"shape\\\":[-3]", "shape"},
      {"\\\"shape\\\":[3]", "\\\"shape\\\":[4611686018427387904,4]", "shape"},
      {"\\\"piece_bytes\\\":16384", "\\\"piece_bytes\\\":1000", "multiple of 4 KiB"},
      {"\\\"piece_bytes\\\":16384", "\\\"piece_bytes\\\":0", "piece_bytes"},
      {"\\\"piece_bytes\\\":16384", "\\\"piece_bites\\\":16384", "does not know"},
      {"\\\"name\\\":\\\"values\\\"", "\\\"name\\\":\\\"Values\\\"", "not a name"},
      {"\\\"name\\\":\\\"values\\\"", "\\\"name\\\":\\\"table\\\"", "appears twice"},
      {"\\\"name\\\":\\\"globals\\\"", "\\\"name\\\":\\\"memory\\\"", "appears twice"},
      {"\\\"kind\\\":\\\"messages\\\"", "\\\"kind\\\":\\\"\\\"", "kind"},
      {"\\\"attributes\\\":{}", "\\\"attributes\\\":[]", "attributes"},
      {"\"numerics_id\":", "\"numerics\":", "no \"numerics_id\""},
      {"\"numerics_id\":", "\"more\":\"x\",\"numerics_id\":", "\"more\""},
      {"\"created_ns\":\"1", "\"created_ns\":\"-", "created_ns"},
      {"\"created_ns\":\"1", "\"created_ns\":\"99999999991", "created_ns"},
      {"\"parent\":\"c", "\"parent\":\"C", "parent"},
      {"\"sections\":\"[", "\"sections\":\"", "sections"},
      {"\"notes\":\"{", "\"notes\":\"[", "notes"},
  };
  for (const Edit& edit : edits) {
    const Status status = check_all(edited(file, edit.from, edit.to));
    EXPECT_EQ(status.code(), Code::kInvalidArgument)
        << edit.from << " -> " << edit.to << ": " << status.message();
    EXPECT_TRUE(holds(status, edit.message)) << edit.from << " -> " << edit.to << ": " << status.message();
  }
}

TEST(Reader, HeaderLengthMustEndOnAUnit) {
  Bytes file = TestSnapshot().write();
  for (const uint64_t length : {uint64_t{65520}, uint64_t{0}, uint64_t{8}, uint64_t{UINT64_MAX},
                                uint64_t{65536}, uint64_t{UINT64_MAX - 7}, uint64_t{17} << 20}) {
    std::memcpy(file.data(), &length, 8);
    const Status status = check_all(file);
    EXPECT_EQ(status.code(), Code::kDataLoss) << length << ": " << status.message();
  }
}

}  // namespace
}  // namespace driftwood::snapshot
