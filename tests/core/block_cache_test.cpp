#include "core/block_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace gainlens {
namespace block_cache_test {

constexpr std::size_t mebi = std::size_t{1} << 20;

TEST(BlockCache, AFreedBlockIsGivenOutAgain) {
  BlockCache cache;
  void* const first = cache.take(4 * mebi);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 4096, 0u);
  std::memset(first, 1, 4 * mebi);
  cache.give(first);
  EXPECT_EQ(cache.usage().kept, 4 * mebi);
  EXPECT_FALSE(cache.give(first));  // not in use
  EXPECT_EQ(cache.take(4 * mebi - 100), first);
  EXPECT_EQ(cache.usage().kept, 0u);
  cache.give(first);
}

TEST(BlockCache, ALargeBlockIsGivenOutInPartsAndJoinedAgain) {
  BlockCache cache;
  auto* const large = static_cast<std::byte*>(cache.take(12 * mebi));
  cache.give(large);
  void* const first = cache.take(4 * mebi);
  void* const second = cache.take(4 * mebi);
  void* const third = cache.take(4 * mebi);
  EXPECT_EQ(first, large);
  EXPECT_EQ(second, large + 4 * mebi);
  EXPECT_EQ(third, large + 8 * mebi);
  for (void* block : {first, third, second}) cache.give(block);  // the last one joins both others
  EXPECT_EQ(cache.usage().kept, 12 * mebi);
  EXPECT_EQ(cache.take(12 * mebi), large);
  cache.give(large);
}

TEST(BlockCache, HoldsLittleMoreThanThePeakOfWhatIsInUse) {
  BlockCache cache;
  std::vector<void*> blocks;
  // Sizes of which no freed one fits a later one.
  for (std::size_t size = 2; size <= 64; size *= 2) {
    blocks.push_back(cache.take(size * mebi));
    if (blocks.size() > 1) {
      cache.give(blocks.front());
      blocks.erase(blocks.begin());
    }
    const BlockCache::Usage usage = cache.usage();
    EXPECT_LE(usage.in_use + usage.kept, usage.peak + usage.peak / 16);
  }
  EXPECT_EQ(cache.usage().peak, 96 * mebi);  // 32 and 64
  for (void* block : blocks) cache.give(block);
  EXPECT_EQ(cache.usage().in_use, 0u);
  EXPECT_LE(cache.usage().kept, 102 * mebi);
}

TEST(BlockCache, MoreThanThereIsGivesNull) {
  BlockCache cache;
  cache.give(cache.take(mebi));
  EXPECT_EQ(cache.usage().kept, mebi);
  EXPECT_EQ(cache.take(std::size_t{1} << 60), nullptr);
  EXPECT_EQ(cache.usage().kept, 0u);  // the system might have had enough with these
  EXPECT_EQ(cache.take(std::numeric_limits<std::size_t>::max()), nullptr);
  EXPECT_EQ(cache.usage().in_use, 0u);
}

TEST(BlockCache, ServesThreadsAtOnce) {
  BlockCache cache;
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      auto* const bytes = static_cast<unsigned char*>(cache.take((1 + static_cast<std::size_t>(i) % 3) * mebi));
      ASSERT_NE(bytes, nullptr);
      bytes[0] = static_cast<unsigned char>(i);
      ASSERT_EQ(bytes[0], i % 256);
      cache.give(bytes);
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(cache.usage().in_use, 0u);
}

}  // namespace block_cache_test
}  // namespace gainlens
