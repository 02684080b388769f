#include "data/changed_histories.h"

#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace gainlens::data {
namespace changed_histories_test {

using ::testing::HasSubstr;
using testing::refusal_of;

/// Users with different items, 3 to `longest` of them, of a catalogue of 97.
LeaveOneOut made_split(int users = 400, int longest = 22) {
  std::string text;
  for (int user = 0; user < users; ++user) {
    text += "u" + std::to_string(user);
    for (int i = 0; i < 3 + user % (longest - 2); ++i) text += " " + std::to_string((user * 13 + i * 5) % 97 + 1);
    text += "\n";
  }
  const testing::TemporaryFolder folder;
  return LeaveOneOut(read_interactions(testing::write_file(folder.path() / "data", text)));
}

std::vector<ItemId> for_user(const LeaveOneOut& split, std::int64_t user) {
  const auto items = split.interactions().items_of(user);
  return {items.begin(), items.end()};
}

/// Whether `part` is `whole` with some elements left out.
bool is_subsequence(std::span<const ItemId> part, std::span<const ItemId> whole) {
  std::size_t found = 0;
  for (const ItemId item : whole) found += found < part.size() && part[found] == item ? 1 : 0;
  return found == part.size();
}

TEST(ChangedHistories, ThinnedKeepsTestsOrderAndOnAverageTheShare) {
  const LeaveOneOut split = made_split();
  for (const double share : {0.25, 0.5}) {
    const ChangedHistories made = thinned(split, share, 3);
    ASSERT_EQ(std::ssize(made.sequences), split.users());
    double kept = 0, floored = 0;
    for (std::int64_t user = 0; user < split.users(); ++user) {
      const auto& sequence = made.sequences[static_cast<std::size_t>(user)];
      const std::vector<ItemId> all = for_user(split, user);
      ASSERT_GE(sequence.size(), 3u);
      EXPECT_TRUE(std::equal(sequence.end() - 2, sequence.end(), all.end() - 2));
      EXPECT_TRUE(is_subsequence(sequence, all));
      const double training = static_cast<double>(all.size() - 2), own = static_cast<double>(sequence.size() - 2);
      EXPECT_LT(std::abs(own - std::max(share * training, 1.0)), 1);
      kept += own;
      floored += share * training < 1 ? 1 - share * training : 0;
    }
    EXPECT_EQ(made.changed, static_cast<std::int64_t>(kept));
    EXPECT_NEAR(static_cast<double>(made.floored), floored, 4 * std::sqrt(floored) + 1e-9);
    const double expected = share * static_cast<double>(made.training) + floored;
    EXPECT_NEAR(kept, expected, 4 * 0.5 * std::sqrt(400.0));
  }
}

TEST(ChangedHistories, EveryPlaceOfAHistoryIsKeptEquallyOften) {
  const LeaveOneOut split = made_split();
  std::map<std::size_t, double> kept;  // of the longest histories, with 20 training items
  double users = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const ChangedHistories made = thinned(split, 0.4, seed);
    for (std::int64_t user = 19; user < split.users(); user += 20) {
      const std::vector<ItemId> all = for_user(split, user);
      ASSERT_EQ(all.size(), 22u);
      const auto& sequence = made.sequences[static_cast<std::size_t>(user)];
      for (std::size_t i = 0; i + 2 < sequence.size(); ++i) ++kept[std::ranges::find(all, sequence[i]) - all.begin()];
      ++users;
    }
  }
  for (std::size_t place = 0; place < 20; ++place)
    EXPECT_NEAR(kept[place] / users, 0.4, 4 * std::sqrt(0.24 / users)) << place;
}

TEST(ChangedHistories, SharesOfOneSeedAreNested) {
  const LeaveOneOut split = made_split();
  const ChangedHistories some = thinned(split, 0.3, 5), more = thinned(split, 0.7, 5), all = thinned(split, 1, 5);
  const ChangedHistories little = with_noise(split, 0.2, 5), much = with_noise(split, 0.6, 5),
                         none = with_noise(split, 0, 5);
  for (std::int64_t user = 0; user < split.users(); ++user) {
    const auto at = static_cast<std::size_t>(user);
    EXPECT_TRUE(is_subsequence(some.sequences[at], more.sequences[at]));
    EXPECT_EQ(all.sequences[at], for_user(split, user));
    EXPECT_EQ(none.sequences[at], for_user(split, user));
    for (std::size_t i = 0; i < little.sequences[at].size(); ++i) {
      if (little.sequences[at][i] == none.sequences[at][i]) continue;
      EXPECT_EQ(little.sequences[at][i], much.sequences[at][i]);
    }
  }
  EXPECT_EQ(thinned(split, 0.3, 5).sequences, some.sequences);
  EXPECT_NE(thinned(split, 0.3, 6).sequences, some.sequences);
  EXPECT_NE(with_noise(split, 0.2, 6).sequences, little.sequences);
}

TEST(ChangedHistories, NoiseReplacesTheShareByItemsThatTheUserDoesNotHave) {
  const LeaveOneOut split = made_split();
  const ChangedHistories made = with_noise(split, 0.3, 1);
  std::int64_t replaced = 0;
  std::set<ItemId> noise;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    const std::vector<ItemId> all = for_user(split, user);
    const auto& sequence = made.sequences[static_cast<std::size_t>(user)];
    ASSERT_EQ(sequence.size(), all.size());
    EXPECT_TRUE(std::equal(sequence.end() - 2, sequence.end(), all.end() - 2));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (sequence[i] == all[i]) continue;
      ++replaced;
      noise.insert(sequence[i]);
      EXPECT_EQ(std::ranges::count(all, sequence[i]), 0);
    }
  }
  EXPECT_EQ(made.changed, replaced);
  const double training = static_cast<double>(made.training);
  EXPECT_NEAR(static_cast<double>(replaced) / training, 0.3, 4 * std::sqrt(0.21 / training));
  EXPECT_EQ(noise.size(), 97u);  // more than 1,000 draws of 97 items
}

TEST(ChangedHistories, ItemsThatNobodyHasAnyMoreAreCounted) {
  const testing::TemporaryFolder folder;
  const LeaveOneOut split(read_interactions(testing::write_file(folder.path() / "data", "a 1 2 3 4\nb 5 3 4\n")));
  const ChangedHistories made = thinned(split, 0.5, 0);  // a keeps one of 1 and 2
  EXPECT_EQ(made.changed, 2);
  EXPECT_EQ(made.missing_items, 1);
  EXPECT_THAT(sequence_lines({{1, 3, 4}, {5, 3, 4}}), "1 1 3 4\n2 5 3 4\n");
}

TEST(ChangedHistories, SharesThatMakeNoSenseAreRefused) {
  const LeaveOneOut split = made_split(3);
  for (const double share : {0.0, -0.1, 1.1, std::nan("")}) {
    EXPECT_THAT(refusal_of([&] { thinned(split, share, 0); }), HasSubstr("must be above 0, and at most 1")) << share;
    if (share == 0) continue;
    EXPECT_THAT(refusal_of([&] { with_noise(split, share, 0); }), HasSubstr("must be from 0 to 1")) << share;
  }
  const testing::TemporaryFolder folder;
  const LeaveOneOut full(read_interactions(testing::write_file(folder.path() / "data", "a 1 2 3\n")));
  EXPECT_THAT(refusal_of([&] { with_noise(full, 1, 0); }), HasSubstr("user 1 has every item of the catalogue"));
}

}  // namespace changed_histories_test
}  // namespace gainlens::data
