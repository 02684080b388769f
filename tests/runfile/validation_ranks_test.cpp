#include "runfile/recommend_run.h"

#include "core/random.h"
#include "core/ranking_metrics.h"
#include "runfile/made_recommend_run.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace gainlens::runfile {
namespace validation_ranks_test {

using ::testing::HasSubstr;
using testing::refusal_of;
using testing::TemporaryFolder;

class ValidationRanks : public ::testing::Test {
 protected:
  ValidationRanks() : run_(testing::uneven_recommend_run()) {
    Random random(5);
    for (std::size_t user = 0; user < run_.units.size(); ++user)
      run_.validation_target.push_back(static_cast<std::int64_t>(1 + random.below(25)));
    for (auto& result : run_.results) {
      if (!result) continue;
      for (std::size_t user = 0; user < run_.units.size(); ++user)
        result->scores[validation_rank_score].push_back(1 + static_cast<double>(random.below(48)) / 2);
    }
  }
  RecommendRun written() const {
    write_recommend_run(folder_.path() / "run.h5", run_);
    return read_recommend_run(folder_.path());
  }
  TemporaryFolder folder_;
  RecommendRun run_;
};

TEST_F(ValidationRanks, AreReadAsTheyWereWritten) {
  const RecommendRun found = written();
  EXPECT_EQ(found.validation_target, run_.validation_target);
  for (std::size_t i = 0; i < run_.results.size(); ++i) {
    if (run_.results[i]) {
      EXPECT_EQ(found.results[i]->scores, run_.results[i]->scores) << i;
    }
  }
}

TEST_F(ValidationRanks, StandInThePlaceOfThoseOfTheTest) {
  const RecommendRun changed = on_validation_items(written(), "run");
  EXPECT_EQ(changed.target, run_.validation_target);
  EXPECT_EQ(changed.history_length, run_.training_length);
  EXPECT_FALSE(changed.result(1, 1));
  for (std::size_t i = 0; i < run_.results.size(); ++i) {
    if (!run_.results[i]) continue;
    const std::vector<double>& ranks = run_.results[i]->scores.at(validation_rank_score);
    EXPECT_EQ(ranks_of(*changed.results[i]), ranks);
    EXPECT_EQ(changed.results[i]->test.at("mrr"), mean_of(parse_ranking_metric("mrr"), ranks));
    EXPECT_EQ(changed.results[i]->curve, run_.results[i]->curve);
  }
}

TEST_F(ValidationRanks, ATrainingOfAnEarlierVersionLacksThem) {
  run_.results[2]->scores.erase(validation_rank_score);
  const RecommendRun found = written();
  EXPECT_TRUE(found.results[1]->scores.contains(validation_rank_score));
  EXPECT_FALSE(found.results[2]->scores.contains(validation_rank_score));
  EXPECT_EQ(refusal_of([&] { on_validation_items(found, "run"); }),
            "run: plain, seed 2, has no ranks of validation items, which earlier versions did not store; delete "
            "result.safetensors in its folder and repeat its gainlens train recommend command, which computes them");
  for (auto& result : run_.results) {
    if (result) result->scores.erase(validation_rank_score);
  }
  EXPECT_TRUE(written().validation_target.empty());
  EXPECT_THAT(refusal_of([&] { on_validation_items(written(), "run"); }), HasSubstr("plain, seed 0, has no ranks of"));
}

TEST_F(ValidationRanks, WrongOnesAreRefused) {
  std::vector<double>& ranks = run_.results[1]->scores.at(validation_rank_score);
  for (const double wrong : {0.5, 25.5, 2.25, std::nan("")}) {
    const double before = std::exchange(ranks[7], wrong);
    EXPECT_THAT(refusal_of([&] { written(); }), HasSubstr("'validation_rank' holds ")) << wrong;
    ranks[7] = before;
  }
  run_.validation_target[3] = 26;
  EXPECT_THAT(refusal_of([&] { written(); }), HasSubstr("'validation_target' holds 26"));
}

}  // namespace validation_ranks_test
}  // namespace gainlens::runfile
