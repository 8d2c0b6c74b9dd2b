// Properties of layouts, the block pool and block tables: a model of plain vectors walks beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/rng.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/kv_layout.h"

namespace driftwood::kv {
namespace {

KvLayout small_layout(DType dtype = DType::kF16) { return *KvLayout::create(2, 2, 32, dtype); }

std::unique_ptr<BlockPool> pool_of(int64_t blocks) {
  const KvLayout layout = small_layout();
  return std::move(*BlockPool::create(layout, blocks * layout.block_bytes()));
}

TEST(KvLayout, OffsetsFollowTheFormula) {
  const KvLayout layout = *KvLayout::create(30, 3, 64, DType::kF16);
  EXPECT_EQ(layout.token_bytes(), 30 * 2 * 3 * 64 * 2);
  EXPECT_EQ(layout.block_bytes(), 12 * 65536);  // 737,280 bytes padded
  EXPECT_EQ(layout.k_offset(0), 0);
  EXPECT_EQ(layout.v_offset(0), 3 * 64 * 32 * 2);
  EXPECT_EQ(layout.k_offset(1), 2 * 3 * 64 * 32 * 2);
  EXPECT_LE(layout.v_offset(29) + 3 * 64 * 32 * 2, layout.block_bytes());
}

TEST(KvLayout, RefusesWhatItCannotHold) {
  EXPECT_EQ(KvLayout::create(1, 1, 32, DType::kBF16).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(KvLayout::create(0, 1, 32, DType::kF16).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(KvLayout::create(60000, 60000, 60000, DType::kF32).status().code(), Code::kInvalidArgument);
}

// Every element is filled with its token's number + 1; after zeroing, exactly the kept tokens' elements
// remain.
template <typename Element>
void check_zeroing(DType dtype, int64_t from) {
  const KvLayout layout = small_layout(dtype);
  std::vector<uint8_t> bytes(static_cast<size_t>(layout.block_bytes()), 0xff);
  auto* elements = reinterpret_cast<Element*>(bytes.data());
  const auto at = [&](int64_t offset, int64_t index) -> Element& {
    return elements[offset / static_cast<int64_t>(sizeof(Element)) + index];
  };
  for (int64_t l = 0; l < 2; ++l) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t d = 0; d < 32; ++d) {
        for (int64_t t = 0; t < 32; ++t) {
          at(layout.k_offset(l), (h * 32 + d) * 32 + t) = static_cast<Element>(t + 1);
          at(layout.v_offset(l), (h * 32 + t) * 32 + d) = static_cast<Element>(t + 1);
        }
      }
    }
  }
  layout.zero_tokens_from(bytes.data(), from);
  for (int64_t l = 0; l < 2; ++l) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t d = 0; d < 32; ++d) {
        for (int64_t t = 0; t < 32; ++t) {
          const auto expected = static_cast<Element>(t < from ? t + 1 : 0);
          ASSERT_EQ(at(layout.k_offset(l), (h * 32 + d) * 32 + t), expected);
          ASSERT_EQ(at(layout.v_offset(l), (h * 32 + t) * 32 + d), expected);
        }
      }
    }
  }
  const auto payload = static_cast<size_t>(layout.token_bytes() * 32);
  EXPECT_TRUE(
      std::all_of(bytes.begin() + static_cast<long>(payload), bytes.end(), [](uint8_t b) { return b == 0; }));
}

TEST(KvLayout, ZeroesExactlyThePastOfEachToken) {
  for (int64_t from : {0, 1, 17, 31, 32}) {
    check_zeroing<uint16_t>(DType::kF16, from);
    check_zeroing<float>(DType::kF32, from);
  }
}

TEST(BlockPool, GivesTheLowestFreeBlockAndNamesItsBudget) {
  auto pool = pool_of(4);
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(*pool->allocate(), i);
  const auto full = pool->allocate();
  ASSERT_FALSE(full.is_ok());
  EXPECT_EQ(full.status().code(), Code::kResourceExhausted);
  EXPECT_NE(full.status().message().find("KV budget of 262144 bytes"), std::string::npos)
      << full.status().message();
  EXPECT_EQ(pool->in_use(), 4);
  pool->release(2);
  pool->release(1);
  EXPECT_EQ(*pool->allocate(), 1);
  EXPECT_EQ(*pool->allocate(), 2);
}

TEST(BlockPool, RefusesABudgetWithoutABlock) {
  EXPECT_EQ(BlockPool::create(small_layout(), 1000).status().code(), Code::kInvalidArgument);
}

TEST(KvLayout, NamesWhatItsBytesAre) {
  const KvLayout layout = *KvLayout::create(30, 3, 64, DType::kF16);
  EXPECT_EQ(layout.format_id(), "kv-f16");
  EXPECT_EQ(layout.geometry(), "32 tokens, 30 layers of K[3][64][32] V[3][32][64], 786432 bytes");
  EXPECT_EQ(small_layout(DType::kF32).format_id(), "kv-f32");
}

TEST(BlockPool, LoadsSavedBytesUpToTheTokensTheyHold) {
  auto pool = pool_of(2);
  const int32_t id = *pool->allocate();
  const std::vector<uint8_t> saved(static_cast<size_t>(pool->layout().block_bytes()), 0x5a);
  std::vector<uint8_t> expected = saved;
  pool->layout().zero_tokens_from(expected.data(), 9);
  pool->load(id, saved, 9);
  EXPECT_EQ(std::memcmp(pool->block(id), expected.data(), expected.size()), 0);
  pool->retain(id);
  EXPECT_DEATH(pool->load(id, saved, 9), "unshared");
}

TEST(BlockPoolDeath, CatchesDoubleRelease) {
  auto pool = pool_of(2);
  const int32_t id = *pool->allocate();
  pool->release(id);
  EXPECT_DEATH(pool->release(id), "released twice");
}

// A token is written as its value in the first K element of its place; a session must always read what it
// wrote.
uint16_t* cell(BlockPool* pool, const BlockTable& table, int64_t position) {
  auto* k = reinterpret_cast<uint16_t*>(pool->block(table.ids()[position / kKvBlockTokens]));
  return k + position % kKvBlockTokens;
}

struct Walker {
  std::unique_ptr<BlockTable> table;
  std::vector<uint16_t> tokens;  // the truth
};

class ForkTree : public ::testing::Test {
 protected:
  static constexpr int64_t kMaxTokens = 200;

  void append(Walker* w, int64_t count, uint16_t value) {
    const auto length = static_cast<int64_t>(w->tokens.size());
    const std::vector<int32_t> before(w->table->ids(), w->table->ids() + w->table->size());
    const int64_t in_use = pool_->in_use();
    const Status status = w->table->prepare(pool_.get(), length, length + count);
    if (!status.is_ok()) {
      EXPECT_EQ(status.code(), Code::kResourceExhausted);
      EXPECT_EQ(before, std::vector<int32_t>(w->table->ids(), w->table->ids() + w->table->size()));
      EXPECT_EQ(in_use, pool_->in_use());
      ++refused_;
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      *cell(pool_.get(), *w->table, length + i) = value;
      w->tokens.push_back(value++);
    }
  }

  void check_all() {
    std::map<int32_t, int32_t> counts;
    for (const Walker& w : walkers_) {
      for (int64_t b = 0; b < w.table->size(); ++b) ++counts[w.table->ids()[b]];
      for (size_t p = 0; p < w.tokens.size(); ++p) {
        ASSERT_EQ(*cell(pool_.get(), *w.table, static_cast<int64_t>(p)), w.tokens[p]) << "position " << p;
      }
      EXPECT_EQ(w.table->size(), blocks_for(static_cast<int64_t>(w.tokens.size())));
    }
    for (const auto& [id, count] : counts) ASSERT_EQ(pool_->references(id), count) << "block " << id;
    EXPECT_EQ(pool_->in_use(), static_cast<int64_t>(counts.size()));
  }

  void act(uint64_t dice, uint64_t value) {
    Walker& w = walkers_[(value >> 8) % walkers_.size()];
    const auto length = static_cast<int64_t>(w.tokens.size());
    if (dice < 50) {
      const int64_t count = std::min<int64_t>(1 + static_cast<int64_t>(value % 40), kMaxTokens - length);
      append(&w, count, static_cast<uint16_t>(value >> 20));
    } else if (dice < 70 && walkers_.size() < 8) {
      Walker child{std::make_unique<BlockTable>(kMaxTokens), w.tokens};
      child.table->fork_from(pool_.get(), *w.table, length);
      walkers_.push_back(std::move(child));
    } else if (dice < 90) {
      const int64_t keep = static_cast<int64_t>(value % static_cast<uint64_t>(length + 1));
      w.table->truncate(pool_.get(), keep);
      w.tokens.resize(static_cast<size_t>(keep));
    } else if (walkers_.size() > 1) {
      w.table->clear(pool_.get());
      std::swap(w, walkers_.back());
      walkers_.pop_back();
    }
  }

  std::unique_ptr<BlockPool> pool_ = pool_of(20);
  std::vector<Walker> walkers_;
  int refused_ = 0;
};

TEST_F(ForkTree, AnyOrderOfAppendForkTruncateAndCloseKeepsEveryToken) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    walkers_.push_back({std::make_unique<BlockTable>(kMaxTokens), {}});
    for (uint64_t step = 0; step < 300; ++step) {
      act(random_u64(seed, 1, step, 0) % 100, random_u64(seed, 2, step, 0));
      check_all();
      if (HasFatalFailure()) return;
    }
    for (Walker& w : walkers_) w.table->clear(pool_.get());
    walkers_.clear();
    ASSERT_EQ(pool_->in_use(), 0);
  }
  EXPECT_GT(refused_, 0) << "the walk must also meet the budget";
}

TEST_F(ForkTree, AForkSharesAllBlocksAndCopiesOneWhenItWrites) {
  walkers_.push_back({std::make_unique<BlockTable>(kMaxTokens), {}});
  append(&walkers_[0], 70, 1);
  Walker child{std::make_unique<BlockTable>(kMaxTokens), walkers_[0].tokens};
  child.table->fork_from(pool_.get(), *walkers_[0].table, 70);
  walkers_.push_back(std::move(child));
  EXPECT_EQ(pool_->in_use(), 3);
  append(&walkers_[1], 1, 1000);
  EXPECT_EQ(pool_->in_use(), 4);
  append(&walkers_[0], 1, 2000);  // now the only owner of the old block: no further copy
  EXPECT_EQ(pool_->in_use(), 4);
  check_all();
  for (Walker& w : walkers_) w.table->clear(pool_.get());
}

}  // namespace
}  // namespace driftwood::kv
