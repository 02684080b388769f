#include "recommend/full_ranking.h"

#include "core/error.h"
#include "core/ranking_metrics.h"
#include "recommend/baselines.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/small_data.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace gainlens::recommend {
namespace full_ranking_test {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Scores that depend on the length of the history and the item alone: a table.
class TableScorer : public Scorer {
 public:
  explicit TableScorer(at::Tensor table) : table_(std::move(table)) {}
  at::Tensor represent(std::span<const data::History> histories) override {
    std::vector<std::int64_t> rows;
    for (const auto& history : histories) rows.push_back(std::ssize(history.items) % table_.size(0));
    return at::tensor(rows, at::kLong);
  }
  at::Tensor scores(const at::Tensor& users, std::int64_t first, std::int64_t count) override {
    return table_.index_select(0, users).narrow(1, first, count).contiguous();
  }
  at::Tensor table_;  // [row, item]
};

TEST(FullRanking, CountsBetterAndHalfOfTheEqualOnesByHand) {
  // One user knows items 1 and 2; the target is 3.
  const data::LeaveOneOut split = split_of({{1, 2, 3}}, 6);
  TableScorer scorer(at::tensor({9.0F, 0.0F, 5.0F, 7.0F, 5.0F, 5.0F}).unsqueeze(0));
  EXPECT_THAT(rank_all(scorer, split, data::HeldOut::test), ElementsAre(FloatEq(1 + 1 + 1)));  // 4 better; 5, 6 equal
  EXPECT_THAT(rank_all(scorer, split, data::HeldOut::test, {.keep_seen = true}), ElementsAre(FloatEq(1 + 2 + 1)));
  // For validation the target is 2, and 1 is known.
  EXPECT_THAT(rank_all(scorer, split, data::HeldOut::validation), ElementsAre(FloatEq(1 + 4)));
}

TEST(FullRanking, ATargetThatIsKnownIsACandidate) {
  const data::LeaveOneOut split = split_of({{2, 1, 2}}, 3);
  TableScorer scorer(at::tensor({9.0F, 5.0F, 7.0F}).unsqueeze(0));
  EXPECT_THAT(rank_all(scorer, split, data::HeldOut::test), ElementsAre(FloatEq(2)));  // 3 is better, 1 is known
}

TEST(FullRanking, IsThatOfASortedListInBlocksOfAnySize) {
  at::manual_seed(2);
  std::vector<std::vector<data::ItemId>> sequences;
  for (std::int64_t user = 0; user < 37; ++user) {
    auto& sequence = sequences.emplace_back();
    for (std::int64_t i = 0; i < 3 + user % 9; ++i)
      sequence.push_back(static_cast<data::ItemId>(at::randint(53, {1}).item<std::int64_t>() + 1));
  }
  const data::LeaveOneOut split = split_of(sequences, 53);
  TableScorer scorer(at::randint(12, {11, 53}, at::kFloat));  // many ties
  for (const bool keep_seen : {false, true}) {
    std::vector<float> expected;
    for (std::int64_t user = 0; user < split.users(); ++user) {
      const auto history = split.history(user, data::HeldOut::test).items;
      const std::set<data::ItemId> known(history.begin(), history.end());
      const at::Tensor row = scorer.table_[std::ssize(history) % 11];
      const data::ItemId target = split.target(user, data::HeldOut::test);
      double rank = 1;
      for (data::ItemId item = 1; item <= 53; ++item) {
        if (item == target || (!keep_seen && known.contains(item))) continue;
        const double difference = (row[item - 1] - row[target - 1]).item<double>();
        rank += difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
      }
      expected.push_back(static_cast<float>(rank));
    }
    for (const std::int64_t users : {1, 5, 512}) {
      for (const std::int64_t items : {1, 7, 53, 4096})
        EXPECT_EQ(rank_all(scorer, split, data::HeldOut::test, {keep_seen, users, items}), expected);
    }
  }
}

TEST(FullRanking, ScoresThatAreNoNumbersAreAnError) {
  const data::LeaveOneOut split = split_of({{1, 2, 3}, {1, 2, 3, 4}}, 6);
  at::Tensor table = at::zeros({2, 6});
  table[1][4] = NAN;  // of the second user, whose history has 3 items
  TableScorer scorer(table);
  EXPECT_THAT([&] { rank_all(scorer, split, data::HeldOut::test); }, ThrowsMessage<RunFailed>(HasSubstr("user 'u1'")));
}

TEST(Recommendations, AreTheBestOnesThatAUserDoesNotKnow) {
  const data::LeaveOneOut split = split_of({{1, 2, 3}, {1, 2, 4, 5}}, 6);
  TableScorer scorer(at::tensor({9.0F, 8.0F, 1.0F, 7.0F, 2.0F, 7.0F}).unsqueeze(0));
  for (const std::int64_t items : {1, 2, 4096}) {
    const Recommendations found = recommend_all(scorer, split, 3, {false, 1, items});
    EXPECT_THAT(found.items, ElementsAre(4, 6, 5, 6, 3, 0));
    EXPECT_THAT(std::vector<float>(found.scores.begin(), found.scores.begin() + 5), ElementsAre(7, 7, 2, 7, 1));
    EXPECT_TRUE(std::isnan(found.scores[5]));
    EXPECT_THAT(recommend_all(scorer, split, 2, {true, 1, items}).items, ElementsAre(1, 2, 1, 2));
  }
  EXPECT_THROW(recommend_all(scorer, split, 7), InvalidArgument);
}

TEST(LargestProbabilities, AreThoseOfASoftmaxOverTheCandidates) {
  const data::LeaveOneOut split = split_of({{1, 2, 3}, {1, 2, 4, 5}}, 6);
  TableScorer scorer(at::tensor({9.0F, -8.0F, 1.0F, 7.0F, 2.0F, 7.5F}).unsqueeze(0));
  const auto exps = [](std::initializer_list<double> scores) {
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    return sum;
  };
  // The first user has seen 1 and 2, the second one 1, 2 and 4.
  const std::vector<double> expected{std::exp(7.5) / exps({1, 7, 2, 7.5}), std::exp(7.5) / exps({1, 2, 7.5})};
  const double kept = std::exp(9) / exps({9, -8, 1, 7, 2, 7.5});
  for (const std::int64_t items : {1, 2, 4096}) {
    const std::vector<double> found =
        rank_with_confidence(scorer, split, data::HeldOut::test, {.users_at_once = 1, .items_at_once = items})
            .largest_probability;
    ASSERT_EQ(found.size(), 2u);
    for (std::size_t user = 0; user < 2; ++user) EXPECT_NEAR(found[user], expected[user], 1e-12);
    EXPECT_NEAR(rank_with_confidence(scorer, split, data::HeldOut::test, {true, 1, items}).largest_probability[1], kept,
                1e-12);
  }
  for (const float broken : {NAN, INFINITY, -INFINITY}) {
    scorer.table_[0][4] = broken;
    EXPECT_THAT([&] { rank_with_confidence(scorer, split, data::HeldOut::test); },
                ThrowsMessage<RunFailed>(HasSubstr("user 'u0'")));
  }
  scorer.table_[0][4] = 0;
  const data::LeaveOneOut all = split_of({{1, 2, 3, 3}}, 3);
  TableScorer three(at::zeros({1, 3}));
  EXPECT_THAT([&] { rank_with_confidence(three, all, data::HeldOut::test); },
              ThrowsMessage<InvalidArgument>(HasSubstr("user 'u0' has seen every item")));
}

TEST(Baselines, ByHand) {
  // Training items: 1 2 3 | 1 2 | 3 1 2. Counts: 2, 3, 2, 0 for 1, 2, 3, 4... Steps: 1>2 three times, 2>3, 3>1.
  const data::LeaveOneOut split = split_of({{1, 2, 3, 4, 4}, {1, 2, 4, 4}, {3, 1, 2, 4, 4}}, 4);
  const std::vector<data::ItemId> last_is_2{1, 2}, last_is_3{3};
  const std::vector<data::History> histories{{last_is_2, {}}, {last_is_3, {}}};
  const auto popularity = make_baseline("popularity", split), markov = make_baseline("markov", split);
  const at::Tensor popular = popularity->scores(popularity->represent(histories), 0, 4);
  EXPECT_TRUE(at::equal(popular[0], at::tensor({3.0F, 3.0F, 2.0F, 0.0F})));
  const at::Tensor next = markov->scores(markov->represent(histories), 0, 4);
  EXPECT_EQ(next[0].argmax().item<std::int64_t>(), 2);  // after 2 comes 3
  EXPECT_EQ(next[1].argmax().item<std::int64_t>(), 0);  // after 3 comes 1
  EXPECT_NEAR(next[0][2].item<double>(), 1 + 2.0 / 9, 1e-6);
  EXPECT_TRUE(at::equal(markov->scores(markov->represent(histories), 2, 2), next.narrow(1, 2, 2)));
}

TEST(RankingMetrics, ByHand) {
  const std::vector<float> ranks{1, 3, 10.5F, 40};
  const auto mean = [&](const char* name) { return mean_of(parse_ranking_metric(name), ranks); };
  EXPECT_DOUBLE_EQ(mean("hr@5"), 0.5);
  EXPECT_DOUBLE_EQ(mean("hr@10"), 0.5);
  EXPECT_DOUBLE_EQ(mean("hr@20"), 0.75);
  EXPECT_DOUBLE_EQ(mean("ndcg@5"), (1 + 0.5) / 4);
  EXPECT_DOUBLE_EQ(mean("ndcg@20"), (1 + 0.5 + 1 / std::log2(11.5)) / 4);
  EXPECT_DOUBLE_EQ(mean("mrr"), (1 + 1.0 / 3 + 1 / 10.5 + 1.0 / 40) / 4);
  EXPECT_DOUBLE_EQ(mean("mrr@10"), (1 + 1.0 / 3) / 4);
  EXPECT_THAT([] { parse_ranking_metric("ndgc@10"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("did you mean 'ndcg@10'")));
}

TEST(PublishedCheckpoint, HasThePublishedFigures) {
  const auto model_path = testing::shared_data("models/iclrec-beauty");
  const auto data_path = testing::shared_data("amazon/Beauty.txt.gz");
  if (!model_path || !data_path) GTEST_SKIP() << "shared data models/iclrec-beauty and amazon/Beauty.txt.gz are absent";
  const data::LeaveOneOut split(data::read_interactions(*data_path));
  const RecommenderCheckpoint checkpoint = open_recommender(*model_path, "iclrec");
  check_catalogue(checkpoint, split.interactions(), "Beauty");
  BackboneScorer scorer(*checkpoint.model);
  const std::vector<float> ranks = rank_all(scorer, split, data::HeldOut::test);
  const auto mean = [&](const char* name) { return mean_of(parse_ranking_metric(name), ranks); };
  EXPECT_NEAR(mean("hr@5"), 0.0500, 5e-5);
  EXPECT_NEAR(mean("hr@10"), 0.0744, 5e-5);
  EXPECT_NEAR(mean("hr@20"), 0.1058, 5e-5);
  EXPECT_NEAR(mean("ndcg@5"), 0.0326, 5e-5);
  EXPECT_NEAR(mean("ndcg@10"), 0.0403, 5e-5);
  EXPECT_NEAR(mean("ndcg@20"), 0.0483, 5e-5);
}

}  // namespace full_ranking_test
}  // namespace gainlens::recommend
