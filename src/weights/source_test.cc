#include "weights/weight_source.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "weights/fake_checkpoint.h"
#include "weights/pack.h"

namespace driftwood::weights {
namespace {

namespace fs = std::filesystem;
using format::Encoding;

class SourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dw_weights_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    cache_ = pattern;
    model_ = std::make_shared<FakeCheckpoint>();
    model_->add("a", Encoding::kQ4_1, {100, 256});
    model_->add("b", Encoding::kQ8_0, {33, 64});
    model_->add("c", Encoding::kDense, {20, 50}, DType::kBF16);
    model_->add("norm", Encoding::kDense, {50}, DType::kBF16);
    model_->add("other", Encoding::kDense, {7}, DType::kF32);
  }
  void TearDown() override { fs::remove_all(cache_); }

  Result<std::unique_ptr<WeightSource>> open(const std::string& cache, bool verify = false) {
    SourceOptions options;
    options.cache_dir = cache;
    options.threads = 3;
    options.verify_cache = verify;
    return open_weights(model_, {{"A", {"a", "a"}}, {"B", {"b"}}, {"C", {"c"}}},
                        {{"N", "norm"}, {"O", "other"}}, options);
  }

  // Every value against the checkpoint's bytes.
  void expect_right(WeightSource& source) {
    const std::pair<const char*, std::vector<const char*>> joined[] = {
        {"A", {"a", "a"}}, {"B", {"b"}}, {"C", {"c"}}};
    for (const auto& [key, parts] : joined) {
      const auto m = source.acquire(key);
      ASSERT_TRUE(m.is_ok());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(m->data) % 4096, 0u);
      int64_t row = 0;
      std::vector<float> values(static_cast<size_t>(m->cols));
      for (const char* part : parts) {
        const format::TensorInfo& t = *model_->find(part);
        for (int64_t r = 0; r < t.shape[0]; ++r, ++row) {
          unpack_row(*m, row, values.data());
          for (int64_t k = 0; k < m->cols; ++k) {
            ASSERT_EQ(f32_bits(values[static_cast<size_t>(k)]), f32_bits(decode(t, r * m->cols + k)))
                << key << row;
          }
        }
      }
      EXPECT_EQ(row, m->rows);
      source.release(key);
    }
    for (const auto& [key, name] : {std::pair{"N", "norm"}, std::pair{"O", "other"}}) {
      const auto v = source.vector(key);
      ASSERT_TRUE(v.is_ok());
      const format::TensorInfo& t = *model_->find(name);
      ASSERT_EQ(static_cast<int64_t>(v->size()), t.shape[0]);
      for (size_t i = 0; i < v->size(); ++i)
        ASSERT_EQ(f32_bits((*v)[i]), f32_bits(decode(t, static_cast<int64_t>(i))));
    }
  }

  std::vector<std::string> cache_files() const {
    std::vector<std::string> files;
    if (!fs::exists(cache_ + "/packed")) return files;
    for (const auto& e : fs::directory_iterator(cache_ + "/packed")) files.push_back(e.path().string());
    return files;
  }

  void flip(const std::string& file, size_t offset) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(offset));
    const int c = f.get();
    f.seekp(static_cast<std::streamoff>(offset));
    f.put(static_cast<char>(c ^ 1));
    ASSERT_TRUE(f.good());
  }

  std::string cache_;
  std::shared_ptr<FakeCheckpoint> model_;
};

TEST_F(SourceTest, InMemory) {
  auto source = open("");
  ASSERT_TRUE(source.is_ok()) << source.status().message();
  EXPECT_FALSE((*source)->from_cache());
  expect_right(**source);
  EXPECT_EQ((*source)->acquire("nothing").status().code(), Code::kNotFound);
  EXPECT_EQ((*source)->vector("A").status().code(), Code::kNotFound);
}

TEST_F(SourceTest, SecondOpenComesFromTheCache) {
  auto first = open(cache_);
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_FALSE((*first)->from_cache());
  EXPECT_EQ((*first)->cache_note(), "");
  expect_right(**first);
  ASSERT_EQ(cache_files().size(), 1u);
  struct stat info;
  ASSERT_EQ(::stat(cache_files()[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  for (const bool verify : {false, true}) {
    auto second = open(cache_, verify);
    ASSERT_TRUE(second.is_ok()) << second.status().message();
    EXPECT_TRUE((*second)->from_cache());
    expect_right(**second);
  }
}

TEST_F(SourceTest, EveryDamagedHeaderByteMakesItPackAnew) {
  ASSERT_TRUE(open(cache_).is_ok());
  const std::string file = cache_files().at(0);
  for (size_t at = 0; at < 128 + 4 * 24 + 32; at += 5) {
    flip(file, at);
    auto source = open(cache_);
    ASSERT_TRUE(source.is_ok()) << source.status().message();
    ASSERT_FALSE((*source)->from_cache()) << at;
    ASSERT_NE((*source)->cache_note().find(file), std::string::npos) << (*source)->cache_note();
    auto again = open(cache_);
    ASSERT_TRUE(again.is_ok() && (*again)->from_cache()) << at;
  }
  auto last = open(cache_);
  expect_right(**last);
}

TEST_F(SourceTest, TruncatedExtendedEmptyOrForeignFilesAreRewritten) {
  ASSERT_TRUE(open(cache_).is_ok());
  const std::string file = cache_files().at(0);
  const uintmax_t size = fs::file_size(file);
  for (const uintmax_t wrong : {uintmax_t{0}, uintmax_t{100}, size - 1, size - 65536, size + 1}) {
    fs::resize_file(file, wrong);
    auto source = open(cache_);
    ASSERT_TRUE(source.is_ok());
    EXPECT_FALSE((*source)->from_cache()) << wrong;
    EXPECT_EQ(fs::file_size(file), size);
    expect_right(**source);
  }
  ASSERT_EQ(::chmod(file.c_str(), 0622), 0);  // another user could have written to it
  auto source = open(cache_);
  ASSERT_TRUE(source.is_ok());
  EXPECT_FALSE((*source)->from_cache());
}

TEST_F(SourceTest, DamagedDataIsFoundWhenAskedFor) {
  ASSERT_TRUE(open(cache_).is_ok());
  const std::string file = cache_files().at(0);
  flip(file, 65536 + 1000);
  auto source = open(cache_, true);
  ASSERT_TRUE(source.is_ok());
  EXPECT_FALSE((*source)->from_cache());
  EXPECT_NE((*source)->cache_note().find("'A'"), std::string::npos) << (*source)->cache_note();
  expect_right(**source);
  flip(file, fs::file_size(file) - 65536 + 8);  // a vector
  source = open(cache_, true);
  ASSERT_TRUE(source.is_ok());
  EXPECT_FALSE((*source)->from_cache());
  expect_right(**source);
}

TEST_F(SourceTest, OtherModelFilesOrRequestsDoNotMatch) {
  ASSERT_TRUE(open(cache_).is_ok());
  model_->stamp = "2";
  auto source = open(cache_);
  ASSERT_TRUE(source.is_ok());
  EXPECT_FALSE((*source)->from_cache());
  EXPECT_EQ(cache_files().size(), 1u);
  model_->fingerprint[0] = 'f';
  source = open(cache_);
  ASSERT_TRUE(source.is_ok());
  EXPECT_FALSE((*source)->from_cache());
  EXPECT_EQ(cache_files().size(), 2u);
  SourceOptions options;
  options.cache_dir = cache_;
  auto fewer = open_weights(model_, {{"A", {"a"}}}, {}, options);
  ASSERT_TRUE(fewer.is_ok());
  EXPECT_FALSE((*fewer)->from_cache());
  EXPECT_EQ(cache_files().size(), 3u);
}

TEST_F(SourceTest, UnwritableCacheFallsBackToMemory) {
  std::ofstream(cache_ + "/packed") << "a file where the folder should be";
  auto source = open(cache_);
  ASSERT_TRUE(source.is_ok()) << source.status().message();
  EXPECT_FALSE((*source)->from_cache());
  EXPECT_NE((*source)->cache_note().find("not written"), std::string::npos) << (*source)->cache_note();
  expect_right(**source);
}

// One reader at a time; none where everything fits; another may follow.
TEST_F(SourceTest, Readers) {
  SourceOptions options;
  options.cache_dir = cache_;
  auto source = open_weights(model_, {{"A", {"a", "a"}}, {"B", {"b"}}}, {}, options);
  ASSERT_TRUE(source.is_ok()) << source.status().message();
  const std::vector<std::vector<PackedMatrix>> stages = {{(*source)->acquire("A").value()},
                                                         {(*source)->acquire("B").value()}};
  EXPECT_EQ((*source)->open_reader(stages), nullptr);
  EXPECT_EQ((*source)->residency().streamed_bytes, 0);

  options.memory_bytes = 1;
  auto tight = open_weights(model_, {{"A", {"a", "a"}}, {"B", {"b"}}}, {}, options);
  ASSERT_TRUE(tight.is_ok()) << tight.status().message();
  const std::vector<std::vector<PackedMatrix>> again = {{(*tight)->acquire("A").value()},
                                                        {(*tight)->acquire("B").value()}};
  auto reader = (*tight)->open_reader(again);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ((*tight)->open_reader(again), nullptr);
  EXPECT_EQ((*tight)->residency().kept_bytes, 0);
  for (const size_t stage : {0, 1, 0, 1}) {
    const PackedMatrix& m = again[stage][0];
    EXPECT_EQ(std::memcmp(reader->reach(stage)[0], m.data, m.size_bytes()), 0);
  }
  reader.reset();
  EXPECT_EQ((*tight)->residency().streamed_bytes, 0);
  EXPECT_NE((*tight)->open_reader(again), nullptr);
  for (auto* s : {source->get(), tight->get()}) {
    s->release("A");
    s->release("B");
  }
}

TEST_F(SourceTest, RequestErrors) {
  EXPECT_EQ(open_weights(model_, {{"A", {"a"}}, {"A", {"b"}}}, {}, {}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(open_weights(model_, {{"A", {"a"}}}, {{"A", "norm"}}, {}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(open_weights(model_, {{"A", {"zzz"}}}, {}, {}).status().code(), Code::kNotFound);
  EXPECT_EQ(open_weights(model_, {}, {}, {}).status().code(), Code::kInvalidArgument);
}

// The default model, whole: every matrix of a run, cached, opened again; row samples against the file's
// bytes.
TEST_F(SourceTest, SmolLm2) {
  const char* path = std::getenv("DRIFTWOOD_SMOLLM2");
  if (path == nullptr) GTEST_SKIP() << "set DRIFTWOOD_SMOLLM2 to the SmolLM2 GGUF file to run this";
  auto model = format::open_checkpoint(path);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  std::vector<MatrixRequest> matrices = {{"embed", {"token_embd.weight"}}};
  std::vector<VectorRequest> vectors;
  for (int i = 0; i < 30; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    matrices.push_back({p + "qkv", {p + "attn_q.weight", p + "attn_k.weight", p + "attn_v.weight"}});
    matrices.push_back({p + "o", {p + "attn_output.weight"}});
    matrices.push_back({p + "gate_up", {p + "ffn_gate.weight", p + "ffn_up.weight"}});
    matrices.push_back({p + "down", {p + "ffn_down.weight"}});
    vectors.push_back({p + "norm", p + "attn_norm.weight"});
  }
  SourceOptions options;
  options.threads = 2;
  // Wall time, and processor time of all threads (which a busy machine does not stretch).
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  std::clock_t cpu_start = std::clock();
  const auto lap = [&](const char* what) {
    const double wall = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    const double cpu = static_cast<double>(std::clock() - cpu_start) * 1000.0 / CLOCKS_PER_SEC;
    std::printf("%-24s %8.1f ms wall %8.1f ms processor\n", what, wall, cpu);
    start = Clock::now();
    cpu_start = std::clock();
  };
  auto memory = open_weights(*model, matrices, vectors, options);
  ASSERT_TRUE(memory.is_ok()) << memory.status().message();
  lap("packed into memory");
  options.cache_dir = cache_;
  ASSERT_TRUE(open_weights(*model, matrices, vectors, options).is_ok());
  lap("packed into the cache");
  auto reopened = format::open_checkpoint(path);
  ASSERT_TRUE(reopened.is_ok());
  lap("opened the model again");
  auto cached = open_weights(*reopened, matrices, vectors, options);
  lap("opened the cache");
  ASSERT_TRUE(cached.is_ok() && (*cached)->from_cache());

  for (const MatrixRequest& request : matrices) {
    const PackedMatrix a = (*memory)->acquire(request.key).value();
    const PackedMatrix b = (*cached)->acquire(request.key).value();
    ASSERT_EQ(a.size_bytes(), b.size_bytes());
    ASSERT_EQ(std::memcmp(a.data, b.data, a.size_bytes()), 0) << request.key;
    std::vector<float> row(static_cast<size_t>(a.cols));
    int64_t first = 0;
    for (const std::string& name : request.tensors) {
      const format::TensorInfo& t = *(*model)->find(name);
      for (int64_t r = 0; r < t.shape[0]; r += 29) {
        unpack_row(b, first + r, row.data());
        for (int64_t k = 0; k < a.cols; ++k) {
          ASSERT_EQ(f32_bits(row[static_cast<size_t>(k)]), f32_bits(decode(t, r * a.cols + k))) << name;
        }
      }
      first += t.shape[0];
    }
  }
}

}  // namespace
}  // namespace driftwood::weights
