#include "analyses/arm_pairs.h"

#include "runfile/made_recommend_run.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::analyses {
namespace arm_pairs_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_recommend_run;
using testing::MadeRecommender;
using testing::refusal_of;
using Arms = std::vector<RecommenderArm>;

void add(Arms& arms, const char* path, const runfile::RecommendRun& run) {
  const auto shared = std::make_shared<const runfile::RecommendRun>(run);
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) arms.push_back({path, shared, arm});
  name_arms(arms);
}

std::vector<std::string> pairs_of(const Arms& arms, const Pairing& pairing = {}) {
  std::vector<std::string> words;
  for (const ArmPair& pair : pair_arms(arms, pairing))
    words.push_back(pair.baseline.label + " v " + pair.candidate.label);
  return words;
}

MadeRecommender with_arms(const std::vector<std::string>& arms) {
  MadeRecommender made;
  made.arms = arms;
  return made;
}

TEST(ArmPairs, TheFirstArmIsTheBaselineUnlessAnotherIsNamed) {
  Arms arms;
  add(arms, "one", made_recommend_run(with_arms({"plain", "bft", "markov"})));
  EXPECT_THAT(pairs_of(arms), ElementsAre("plain v bft", "plain v markov"));
  EXPECT_THAT(pairs_of(arms, {.baseline = "bft"}), ElementsAre("bft v plain", "bft v markov"));
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {.baseline = "bff"}); }),
              HasSubstr("--baseline: 'bff' is no arm on made, which has plain, bft, markov; did you mean 'bft'?"));
}

TEST(ArmPairs, EachSplitHasItsOwnBaseline) {
  Arms arms;
  add(arms, "one", made_recommend_run());
  MadeRecommender other;
  other.data = "other";
  add(arms, "two", made_recommend_run(other));
  EXPECT_THAT(pairs_of(arms), ElementsAre("plain v bft", "plain v bft"));
}

TEST(ArmPairs, LabelsAreAsShortAsTheyCanBe) {
  Arms arms;
  add(arms, "runs/one", made_recommend_run());
  add(arms, "runs/two/run.h5", made_recommend_run(with_arms({"plain"})));
  EXPECT_THAT(pairs_of(arms), ElementsAre("one:plain v bft", "one:plain v two:plain"));
  add(arms, "other/two", made_recommend_run(with_arms({"plain"})));
  EXPECT_EQ(arms.back().label, "other/two:plain");
  EXPECT_EQ(arms[1].label, "bft");
  EXPECT_THAT(refusal_of([&] { add(arms, "runs/one", made_recommend_run()); }),
              HasSubstr("runs/one:plain stands twice; name each arm once"));
}

TEST(ArmPairs, ALoneArmIsRefusedWithBothSplits) {
  Arms arms;
  add(arms, "one", made_recommend_run(with_arms({"plain"})));
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }), HasSubstr("one:plain: one arm alone (plain)"));
  MadeRecommender made = with_arms({"plain"});
  made.users_seed = 3;
  add(arms, "two", made_recommend_run(made));
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }),
              HasSubstr("one:plain and two:plain: have different splits, split-made0 and split-made3;"));
}

TEST(ArmPairs, SeedsThatDifferArePairedOnlyOnRequest) {
  Arms arms;
  add(arms, "one", made_recommend_run(with_arms({"plain"})));
  MadeRecommender made = with_arms({"plain"});
  made.seeds = {7, 8, 9};
  add(arms, "two", made_recommend_run(made));
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }),
              AllOf(HasSubstr("have the finished seeds 0 to 2 and 7 to 9"), HasSubstr("--by-position")));
  const auto pairs = pair_arms(arms, {.by_position = true});
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_TRUE(pairs[0].by_position);
  made.seeds = {7, 8};
  arms.pop_back();
  add(arms, "two", made_recommend_run(made));
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {.by_position = true}); }), HasSubstr("have 3 and 2 finished seeds"));
}

TEST(ArmPairs, EqualSeedsAreNotPairedByPosition) {
  Arms arms;
  add(arms, "one", made_recommend_run(with_arms({"plain", "bft"})));
  EXPECT_EQ(refusal_of([&] { pair_arms(arms, {.by_position = true}); }),
            "--by-position: pairs seeds that differ, and these arms have the same seeds, 0 to 2, by which they are "
            "paired; leave it out");
  // Of several pairs one with seeds that differ is enough.
  MadeRecommender made = with_arms({"plain"});
  made.seeds = {7, 8, 9};
  add(arms, "two", made_recommend_run(made));
  EXPECT_EQ(pair_arms(arms, {.by_position = true}).size(), 2u);
}

TEST(ArmPairs, RanksWithoutASeedStandForEverySeedOnRequest) {
  MadeRecommender made = with_arms({"theirs"});
  made.seeds = {0};
  Arms arms;
  add(arms, "one", made_recommend_run(with_arms({"plain"})));
  add(arms, "list", made_recommend_run(made));
  arms.back().seedless = true;
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }),
              HasSubstr("list:theirs: names no seed, and one:plain has the seeds 0 to 2; if nothing random made these "
                        "ranks, give --deterministic"));
  for (const char* baseline : {"plain", "theirs"}) {
    const auto pairs = pair_arms(arms, {.baseline = baseline, .deterministic = true});
    ASSERT_EQ(pairs.size(), 1u);
    const RecommenderArm& list = pairs[0].baseline.label == "theirs" ? pairs[0].baseline : pairs[0].candidate;
    EXPECT_THAT(pairs[0].baseline.seeds(), ElementsAre(0, 1, 2));
    EXPECT_THAT(list.seeds(), ElementsAre(0, 1, 2));
    for (std::size_t seed = 0; seed < 3; ++seed)
      EXPECT_EQ(list.result(seed).scores, arms[1].run->results[0]->scores) << seed;
  }
}

TEST(ArmPairs, SeedsThatAreNotFinishedAreLeftOutOfBothArms) {
  runfile::RecommendRun run = testing::uneven_recommend_run();  // bft lacks seed 1
  Arms arms;
  add(arms, "one", run);
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }),
              HasSubstr("one:plain and one:bft: have the finished seeds 0 to 2 and 0, 2;"));
  run.results[1].reset();
  run.results[7].reset();
  arms.clear();
  add(arms, "one", run);
  EXPECT_THAT(pair_arms(arms, {}).front().baseline.seeds(), ElementsAre(0, 2));
  EXPECT_EQ(arms[0].scores("rank").size(), 2 * run.units.size());
  EXPECT_EQ(arms[0].scores("rank")[run.units.size()], run.results[2]->scores.at("rank")[0]);
}

TEST(ArmPairs, OtherUsersOfOneSplitAreRefused) {
  Arms arms;
  runfile::RecommendRun run = made_recommend_run(with_arms({"plain"}));
  add(arms, "one", run);
  run.units[3] = "somebody";
  add(arms, "two", run);
  EXPECT_THAT(refusal_of([&] { pair_arms(arms, {}); }), HasSubstr("but other users; one of the files is damaged"));
}

}  // namespace arm_pairs_test
}  // namespace gainlens::analyses
