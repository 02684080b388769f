// The checks of `gainlens check`: each fault that is planted is named, and nothing else.
#include "analyses/checks/sweep_checks.h"
#include "analyses/checks/training_checks.h"
#include "analyses/checks/unit_checks.h"
#include "analyses/made_noise_run.h"
#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "core/ranking_metrics.h"
#include "runfile/bos_words.h"
#include "runfile/checksums.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace gainlens::analyses {
namespace checks_test {

using ::testing::AllOf;
using testing::CellKey;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SyntheticRun;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// A run in which all is satisfactory.
SyntheticRun healthy() {
  SyntheticRun run;
  run.lengths = {128, 256};
  run.samples = 5;
  run.layers = 4;
  return run;
}

/// The results that found something.
std::vector<CheckResult> findings(const std::vector<CheckResult>& results) {
  std::vector<CheckResult> found;
  for (const CheckResult& result : results) {
    EXPECT_EQ(result.ok, result.advice.empty()) << result.name;
    EXPECT_FALSE(result.finding.empty()) << result.name;
    if (!result.ok) found.push_back(result);
  }
  return found;
}

std::vector<CheckResult> findings_of(const SyntheticRun& run, const std::string& changed = {}) {
  const TemporaryFolder folder;
  const runfile::RunReader reader = testing::write_run(folder.path() / "run", run);
  return findings(run_checks(sweep_checks(), CheckedSweep{reader, {}, changed}));
}

/// Expects that one check alone finds something.
void expect_finding(const SyntheticRun& run, const std::string& name, const std::string& words) {
  const auto found = findings_of(run);
  ASSERT_EQ(found.size(), 1u) << name;
  EXPECT_EQ(found.front().name, name);
  EXPECT_THAT(found.front().finding, HasSubstr(words));
}

TEST(SweepChecks, FindNothingInAHealthyRun) {
  EXPECT_THAT(findings_of(healthy()), IsEmpty());
  SyntheticRun without = healthy();
  without.statistics = false;
  EXPECT_THAT(findings_of(without), IsEmpty());
}

TEST(SweepChecks, ChangedFiles) {
  const auto found = findings_of(healthy(), "shards/T128-S0.h5: its sha256 is another");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().name, "files");
  EXPECT_THAT(found.front().finding, HasSubstr("its sha256 is another"));
}

TEST(SweepChecks, MissingChunks) {
  SyntheticRun run = healthy();
  run.missing = {{256, 1}};
  expect_finding(run, "complete", "1 of 10 chunks are missing (256 tokens)");
}

TEST(SweepChecks, FewChunks) {
  SyntheticRun run = healthy();
  run.samples = 1;
  expect_finding(run, "chunks", "too few chunks: 1 at 128, 1 at 256 (an interval takes 2");
  run.samples = 2;
  expect_finding(run, "chunks", "too few chunks: 2 at 128, 2 at 256 (an interval of so few is wide");
}

TEST(SweepChecks, AlikeNeighbours) {
  SyntheticRun run = healthy();
  run.samples = 12;
  run.value = [](const CellKey& key) -> std::optional<double> {  // drifts through the text
    if (key.name != "summary/n_eff" || key.length != 128) return std::nullopt;
    return 10 + static_cast<double>(key.sample);
  };
  expect_finding(run, "neighbours", "neighbouring chunks are alike: n_eff at 128 tokens correlates by 0.");
  run.samples = 6;  // too few to tell
  EXPECT_THAT(findings_of(run), IsEmpty());
}

TEST(SweepChecks, WindowsThatAreNotFull) {
  SyntheticRun run = healthy();
  run.lengths = {128, 256, 1024};
  run.attention = {"global", "window:200", "global", "window:200"};
  expect_finding(run, "windows", "window:200 layers, 128 tokens: the window of 200 keys is not full; 256 tokens");
  run.attention.assign(4, "window:200");
  expect_finding(run, "windows", "128 tokens: the window of 200 keys is not full");
  run.attention.assign(4, "window:96");
  EXPECT_THAT(findings_of(run), IsEmpty());
}

TEST(SweepChecks, BeyondTheTrainedLength) {
  SyntheticRun run = healthy();
  run.max_positions = 200;
  EXPECT_THAT(findings_of(run), ::testing::SizeIs(1));
  expect_finding(run, "positions", "256 tokens are more than the model's 200 positions");
}

TEST(SweepChecks, ABosThatIsLeftOut) {
  SyntheticRun run = healthy();
  run.bos.reset();
  run.bos_policy = "no BOS (--bos never; " + std::string(runfile::bos_left_out);
  expect_finding(run, "bos", "the chunks begin without the BOS");
  run.bos_policy = "no BOS (--bos never)";
  EXPECT_THAT(findings_of(run), IsEmpty());
}

TEST(SweepChecks, MissingNumbers) {
  const auto without = [](std::string_view name) {
    SyntheticRun run = healthy();
    run.value = [name](const CellKey& key) -> std::optional<double> {
      return key.name == name && key.layer == 2 && key.head == 1 && key.sample == 3 ? std::optional(missing)
                                                                                    : std::nullopt;
    };
    return run;
  };
  expect_finding(without("summary/entropy"), "queries", "first entropy of layer 2, head 1 at 128 tokens");
  expect_finding(without("profile/n_eff"), "queries", "128 of ");  // 64 bins at 128 and at 256
  expect_finding(
      without("summary/log_observation_precision"), "evidence",
      "2 of 10720 means of lambda_obs and K are missing or infinite, first log_observation_precision of layer "
      "2, head 1 at 128 tokens");
}

/// At a length of 64 the first bin holds query 0 alone, which has no lambda_obs; below 64 some bins hold no query.
TEST(SweepChecks, WhatHasNoNumberByDefinitionIsNoFinding) {
  SyntheticRun run = healthy();
  run.lengths = {32, 64};
  run.value = [](const CellKey& key) -> std::optional<double> {
    const bool empty = key.length == 32 && key.last % 2 == 1;
    if (key.name == "profile/n_eff" && empty) return missing;
    if (key.name == "profile/log_observation_precision" && (empty || key.last == 0)) return missing;
    return std::nullopt;
  };
  EXPECT_THAT(findings_of(run), IsEmpty());
}

TEST(SweepChecks, ScaleOfValues) {
  SyntheticRun run = healthy();
  run.value = [](const CellKey& key) -> std::optional<double> {  // small values make a large K
    const double place = static_cast<double>(key.layer * 4 + key.head) / 16;
    if (key.name == "summary/kalman_gain") return 0.1 + 0.8 * place;
    if (key.name == "summary/kalman_gain_scaled") return 0.9 - 0.8 * place;
    return std::nullopt;
  };
  const auto found = findings_of(run);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back().name, "scale");
  EXPECT_THAT(found.back().finding, HasSubstr("K and scaled K order the heads differently (rank correlation -1.00)"));
}

TEST(SweepChecks, OneKvHead) {
  SyntheticRun run = healthy();
  run.kv_heads = 1;
  expect_finding(run, "kv_heads", "no permutation test can decide");
}

/// The variance that rounding adds, measured on values near a large offset.
TEST(SweepChecks, RoundingNearAnOffset) {
  EXPECT_EQ(offset_rounding(1, 1, 64, 24), 0);              // no offset
  EXPECT_EQ(offset_rounding(1e9, 1e-9, 64, 53), 0);         // float64
  EXPECT_TRUE(std::isinf(offset_rounding(10, 0, 64, 24)));  // no spread at all
  // Values m + z, of one dimension, with z evenly distributed on [0, 1): variance 1/12, spacing 2^-4 near 1000 in 14
  // bits.
  constexpr double offset = 1000, spacing = 0x1p-4;
  double squares = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double exact = offset + (i + 0.5) / count, rounded = std::round(exact / spacing) * spacing;
    squares += (rounded - exact) * (rounded - exact);
  }
  const double measured = squares / count * 12, bound = offset_rounding(offset + 0.5, 1.0 / 12, 1, 14);
  EXPECT_LE(measured, bound);
  EXPECT_GE(measured, bound / 5);  // by the place of 1000 within its powers of two
}

TEST(Checks, AsJson) {
  const std::vector<CheckResult> results = {{"a", true, "fine", ""}, {"b", false, "bad", "mend it"}};
  const CheckResult unknown{"c", true, "whether it is so; nobody looked", "", false};
  EXPECT_EQ(check_line(results[0]), "satisfactory: fine");
  EXPECT_EQ(check_line(results[1]), "found: bad");
  EXPECT_EQ(check_line(unknown), "not known: whether it is so; nobody looked");
  EXPECT_FALSE(not_known("x").known);
  EXPECT_EQ(all_are(1, "training"), "the only training is");
  EXPECT_EQ(all_are(3, "training"), "all 3 trainings are");
  EXPECT_EQ(to_json(results).dump(), R"({"checks":[{"name":"a","ok":true,"known":true,"finding":"fine","advice":""},)"
                                     R"({"name":"b","ok":false,"known":true,"finding":"bad","advice":"mend it"}]})");
  EXPECT_EQ(count_findings(results), 1u);
}

// Recommenders

runfile::TrainedSeed trained(std::int64_t best_epoch, bool filtered = false) {
  runfile::TrainedSeed seed;
  seed.curve["training_loss"] = {3, 2, 1.5, 1.4};
  seed.best_epoch = best_epoch;
  if (!filtered) return seed;
  for (const runfile::FilterCurve& curve : runfile::filter_curves())
    seed.filter[std::string(curve.name)] = std::vector<double>(8, 0.5);  // 4 epochs of 2 layers
  return seed;
}

/// Two arms of three seeds, with nothing wrong.
runfile::RecommendRun recommenders() {
  runfile::RecommendRun run;
  run.arms = {"plain", "bft"};
  run.seeds = {0, 1, 2};
  run.item_train_count.resize(100, 1);
  for (int i = 0; i < 6; ++i) run.results.emplace_back(trained(3, i >= 3));
  return run;
}

std::vector<CheckResult> findings_of(const runfile::RecommendRun& run, const std::string& changed = {},
                                     bool alone = false) {
  CheckedRecommenders checked(run);
  checked.changed = changed;
  checked.alone = alone;
  return findings(run_checks(recommender_checks(), checked));
}

void expect_finding(const runfile::RecommendRun& run, const std::string& name, const std::string& words) {
  const auto found = findings_of(run);
  ASSERT_EQ(found.size(), 1u) << name;
  EXPECT_EQ(found.front().name, name);
  EXPECT_THAT(found.front().finding, HasSubstr(words));
}

TEST(RecommenderChecks, NameWhatIsWrong) {
  const runfile::RecommendRun good = recommenders();
  EXPECT_THAT(findings_of(good), IsEmpty());
  EXPECT_EQ(findings_of(good, "model.safetensors: has changed").front().name, "files");

  runfile::RecommendRun run = good;
  run.results[5].reset();
  const auto open = findings_of(run);
  ASSERT_EQ(open.size(), 2u);
  EXPECT_THAT(open[0].finding, HasSubstr("1 of 6 trainings are not finished: bft seed 2"));
  EXPECT_THAT(open[1].finding, HasSubstr("too few finished seeds for a p: bft has 2; it takes 3"));
  EXPECT_THAT(findings_of(run, {}, true), ::testing::SizeIs(1)) << "one training alone has no seeds to count";

  run = good;
  for (int i : {0, 1}) run.results[static_cast<std::size_t>(i)]->curve["training_loss"] = {3, 4, 5, 50};
  expect_finding(run, "diverged", "diverged: plain seeds 0, 1; of the first, its last training loss is 50");

  run = good;
  run.results[1]->best_epoch = 4;
  expect_finding(run, "last_epoch", "1 of 6 trainings (plain seed 1)");

  run = good;
  for (const char* name : {"gain", "precision"}) run.results[4]->filter[name].assign(8, missing);
  expect_finding(run, "filter", "not in force in the tested epoch (it warms up): bft seed 1");

  run = good;
  run.results[3]->filter["share_at_most"][4] = 0.99;  // epoch 3, the tested one, layer 0
  expect_finding(
      run, "bounds",
      "lambda_obs of layer 0 in bft seed 0; where precisions are at their bound, K says nothing of the evidence");
  run.results[3]->filter["share_at_most"][4] = 0.5;
  run.results[3]->filter["share_of_precision_at_most"][5] = 1;
  expect_finding(run, "bounds", "lambda of layer 1 in bft seed 0");
  run.results[3]->filter["share_of_precision_at_most"][5] = 0.5;
  run.results[3]->filter["share_of_precision_at_most"][7] = 1;  // of an epoch that was not tested
  run.results[3]->filter["share_at_most"][4] = missing;         // the filter warms up
  EXPECT_THAT(findings_of(run), IsEmpty());
}

// Other experiments

std::vector<CheckResult> findings_of(const runfile::ExperimentRun& run) {
  return findings(run_checks(experiment_checks(), CheckedExperiment(run)));
}

void expect_finding(const runfile::ExperimentRun& run, const std::string& name, const std::string& words,
                    const std::string& advice = {}) {
  const auto found = findings_of(run);
  ASSERT_EQ(found.size(), 1u) << name;
  EXPECT_EQ(found.front().name, name);
  EXPECT_THAT(found.front().finding, HasSubstr(words));
  EXPECT_THAT(found.front().advice, HasSubstr(advice));
}

/// sft and bft at three levels, each of three seeds.
runfile::ExperimentRun finetuned(std::size_t selection = 0) {
  runfile::ExperimentRun run = testing::made_noise_run({.seeds = {0, 1, 2}, .selection = selection});
  for (auto& result : run.results)
    if (selection > 0)
      for (const char* name : {"f1", "exact_match"})
        result->test[std::string(name) + "_not_selected"] =
            mean_score(std::span<const double>(result->scores.at(name)).subspan(selection));
  return run;
}

TEST(ExperimentChecks, NameWhatIsWrong) {
  const runfile::ExperimentRun good = finetuned();
  EXPECT_THAT(findings_of(good), IsEmpty());
  CheckedExperiment changed(good);
  changed.changed = "adapter_model.safetensors: has changed";
  EXPECT_EQ(findings(run_checks(experiment_checks(), changed)).front().name, "files");
  CheckedExperiment alone(good);
  alone.alone = true;
  for (const CheckResult& result : run_checks(experiment_checks(), alone))
    EXPECT_EQ(result.known, result.name != "levels" && result.name != "seeds") << result.name;

  runfile::ExperimentRun run = good;
  run.results[4].reset();
  const auto open = findings_of(run);
  ASSERT_EQ(open.size(), 2u);
  EXPECT_THAT(open[0].finding, HasSubstr("1 of 18 trainings are not finished: sft/np10 seed 1"));
  EXPECT_EQ(open[0].advice, "repeat the gainlens train finetune command, which continues");
  EXPECT_THAT(open[1].finding, HasSubstr("too few finished seeds for a p: sft/np10 has 2; it takes 3"));

  run = good;
  run.arms.pop_back();
  run.results.resize(15);
  expect_finding(run, "levels", "missing: bft/np40", "gainlens train finetune");

  run = good;
  run.results[2]->curve["validation_loss"][1] = missing;
  expect_finding(run, "diverged", "diverged: sft/np0 seed 2; of the first, its validation_loss is nan after epoch 2");
  run = good;
  run.results[3]->curve["training_loss"] = {2, 2.3};
  expect_finding(run, "diverged", "its last training loss is 2.3, above the 2 of the first epoch");

  run = good;
  for (const runfile::FilterCurve& curve : runfile::filter_curves())
    for (std::size_t i = 9; i < 18; ++i) run.results[i]->filter[std::string(curve.name)] = {0.5, 0.5, 0.5, 0.5};
  EXPECT_THAT(findings_of(run), IsEmpty());
  run.results[10]->filter["share_at_most"][3] = 1;  // epoch 2, the tested one, of two layers
  expect_finding(run, "bounds", "lambda_obs of layer 1 in bft/np0 seed 1");
  run.results[10]->filter["share_at_most"][3] = 0.5;
  for (const char* name : {"gain", "precision"}) run.results[11]->filter[name].assign(4, missing);
  expect_finding(run, "filter", "it warms up): bft/np0 seed 2");
}

TEST(ExperimentChecks, SayNothingOfWhatIsNotFinished) {
  const auto known = [](const runfile::ExperimentRun& run, const std::string& name) {
    const auto results = run_checks(experiment_checks(), CheckedExperiment(run));
    return std::ranges::find(results, name, &CheckResult::name)->known;
  };
  runfile::ExperimentRun run = finetuned();
  for (std::size_t result = 9; result < run.results.size(); ++result) run.results[result].reset();  // those of bft
  EXPECT_FALSE(known(run, "filter"));
  EXPECT_TRUE(known(run, "scores"));
  for (auto& result : run.results) result.reset();
  for (const char* name : {"scores", "means", "diverged", "filter", "bounds"}) EXPECT_FALSE(known(run, name)) << name;
  EXPECT_TRUE(known(run, "finished"));
}

TEST(ExperimentChecks, NameScoresThatCannotBe) {
  const runfile::ExperimentRun good = finetuned();
  const auto expect_score = [&](const char* score, double value, const std::string& words) {
    runfile::ExperimentRun run = good;
    run.results[5]->scores[score][7] = value;
    run.results[5]->test[score] = mean_score(run.results[5]->scores[score]);
    if (std::isnan(value)) {
      const auto found = findings_of(run);
      ASSERT_EQ(found.size(), 2u) << "the mean of a NaN is none either";
      EXPECT_THAT(found.front().finding, HasSubstr(words));
    } else {
      expect_finding(run, "scores", "scores that cannot be: sft/np10 seed 2; of the first, " + words,
                     "delete their folders");
    }
  };
  expect_score("f1", 1.25, "f1 holds 1.25; it lies between 0 and 1 (question-7)");
  expect_score("f1", -0.5, "f1 holds -0.5; it lies between 0 and 1 (question-7)");
  expect_score("exact_match", 0.5, "exact_match holds 0.5; it is 0 or 1 (question-7)");
  expect_score("f1", missing, "f1 holds nan, which is no number (question-7)");

  runfile::ExperimentRun run = good;
  run.results[1]->scores["f1"].pop_back();
  run.results[1]->test["f1"] = mean_score(run.results[1]->scores["f1"]);
  expect_finding(run, "scores", "sft/np0 seed 1; of the first, f1 has 59 scores of 60 questions");

  // Other experiments have scores whose bounds nobody knows.
  run = good;
  run.unit_scores.push_back({"loss", false, "nats"});
  for (auto& result : run.results) {
    result->scores["loss"].assign(60, -7);
    result->test["loss"] = -7;
  }
  EXPECT_THAT(findings_of(run), IsEmpty());
}

TEST(ExperimentChecks, NameMetricsThatAreNoMeans) {
  const runfile::ExperimentRun good = finetuned(10);
  EXPECT_THAT(findings_of(good), IsEmpty());
  runfile::ExperimentRun run = good;
  double& stored = run.results[17]->test.at("f1");
  stored = std::nextafter(stored, 2);
  expect_finding(run, "means", "a metric is not the mean of its scores: bft/np40 seed 2; of the first, f1 is ");
  run = good;
  run.results[0]->test.at("exact_match_not_selected") = run.results[0]->test.at("exact_match") + 0.25;
  expect_finding(run, "means", "sft/np0 seed 0; of the first, exact_match_not_selected is ");
  run.request["data"]["selection_rows"] = 61u;
  EXPECT_THAT([&] { findings_of(run); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'selection_rows' must be a number")));
  run = good;
  run.results[0]->test.erase("exact_match");
  expect_finding(run, "means", "there is no exact_match");
}

// Language models

class LanguageChecks : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_.path() / "training");
    std::ofstream(folder_.path() / "training" / name) << text;
  }
  void write_good(bool filtered) { write_good_arm(filtered ? R"("filter": {}, )" : ""); }
  /// @param keys  of the request, by which its arm is known
  void write_good_arm(const std::string& keys) {
    write("request.json", R"({"kind": "train language-model", )" + keys +
                              R"("recipe": {"stages": [{"context": 8, "steps": 20}, {"context": 16, "steps": 10}],
                                            "tokenizer": {"vocabulary": 100}}})");
    write("history.csv",
          "step,training_loss,validation_loss,learning_rate,gradient_norm\n10,4,4.1,0.1,1\n20,3,3.1,0.1,1\n"
          "30,2.5,3.2,0.1,1\n");
    write("filter.csv", "step,layer,precision,gain,share_at_most\n20,0,1,0.5,1\n30,0,1,0.5,0.2\n30,1,1,0.5,0.98\n");
  }
  std::vector<CheckResult> found() const {
    return findings(run_checks(language_checks(), read_language_training(folder_.path())));
  }
  void expect_found(const std::string& name, const std::string& words) {
    const auto all = found();
    ASSERT_EQ(all.size(), 1u) << name;
    EXPECT_EQ(all.front().name, name);
    EXPECT_THAT(all.front().finding, HasSubstr(words));
    write_good(true);
  }
  TemporaryFolder folder_;
};

TEST_F(LanguageChecks, NameWhatIsWrong) {
  write_good(false);
  EXPECT_THAT(found(), IsEmpty());
  write_good(true);
  EXPECT_THAT(found(), IsEmpty());
  const std::string header = "step,training_loss,validation_loss,learning_rate,gradient_norm\n";
  write("history.csv", header + "10,4,4.1,0.1,1\n20,3,3.1,0.1,1\n");
  expect_found("finished", "20 of 30 steps are done");
  write("history.csv", header + "10,4,4.1,0.1,1\n30,nan,4,0.1,1\n");
  expect_found("diverged", "its last training loss is nan");
  write("history.csv", header + "10,4,4.1,0.1,1\n30,2,6,0.1,1\n");
  expect_found("held_out", "best at the first evaluation, 4.1, and is 6 at the last");
  write("filter.csv", "step,layer,precision,gain,share_at_most\n30,0,,,\n30,1,,,\n");
  expect_found("filter", "never in force");
  write("filter.csv", "step,layer,precision,gain,share_at_most\n30,0,1,0.5,1\n30,1,1,0.5,0.995\n");
  expect_found("bounds", "in layers 0, 1");
}

/// Controls write no filter.csv.
TEST_F(LanguageChecks, FilesAreComparedWithTheirLists) {
  write_good(true);
  const auto files = [&] { return run_checks(language_checks(), read_language_training(folder_.path())).front(); };
  EXPECT_FALSE(files().known);
  EXPECT_TRUE(files().ok);
  const std::filesystem::path kept = folder_.path() / "checkpoints" / "step-20";
  std::filesystem::create_directories(kept);
  std::ofstream(kept / "config.json") << "{}";
  const std::string names[] = {"training/history.csv", "training/filter.csv"}, config[] = {"config.json"};
  runfile::write_checksum_list(folder_.path(), names);
  EXPECT_THAT(files().finding, HasSubstr("checkpoints/step-20 has no checksum beside it"));
  runfile::write_checksum_list(kept, config);
  EXPECT_EQ(files().finding, "the files of the training are as it wrote them");
  std::ofstream(kept / "config.json") << "{ }";
  std::filesystem::remove(folder_.path() / "training" / "filter.csv");
  write_good_arm("");
  std::ofstream(folder_.path() / "training" / "filter.csv") << "other\n";
  EXPECT_THAT(files().finding, AllOf(HasSubstr("training/filter.csv: its sha256 is "),
                                     HasSubstr(". And 1 other file: "), HasSubstr("step-20/config.json")));
  runfile::write_checksum_list(folder_.path(), names);
  std::ofstream(kept / runfile::checksum_list_name) << "";
  EXPECT_THAT(files, ThrowsMessage<InvalidArgument>(HasSubstr("lists no file")));
  std::ofstream(kept / "model.safetensors") << "weights";
  runfile::write_checksum_list(kept, config);
  EXPECT_THAT(files().finding, HasSubstr("model.safetensors: is not listed in files.sha256"));
  std::filesystem::remove(kept / "model.safetensors");
  std::ofstream(folder_.path() / "elsewhere") << "{ }";
  std::filesystem::remove(kept / "config.json");
  std::filesystem::create_symlink(folder_.path() / "elsewhere", kept / "config.json");
  EXPECT_THAT(files().finding, HasSubstr("config.json: is a link, or lies behind one"));
  for (const char* name : {"../a", "/etc/hostname", "", "a/../../b"}) {
    std::ofstream(kept / runfile::checksum_list_name) << std::string(64, 'a') << "  " << name << "\n";
    EXPECT_THAT(files, ThrowsMessage<InvalidArgument>(HasSubstr("is no checksum of a file in its folder"))) << name;
  }
}

TEST_F(LanguageChecks, AnArmWithoutAFilterHasNoneToCheck) {
  for (const std::string arm : {"plain", "gate", "constant-k", "plain-decay"}) {
    write_good_arm(arm == "plain" ? "" : R"("filter": {}, "arm": ")" + arm + R"(", )");
    std::filesystem::remove(folder_.path() / "training" / "filter.csv");
    const auto results = run_checks(language_checks(), read_language_training(folder_.path()));
    EXPECT_EQ(count_findings(results), 0u) << arm;
    for (const std::size_t i : {results.size() - 2, results.size() - 1})
      EXPECT_EQ(results[i].finding, "the arm " + arm + " has no filter to check");
  }
}

TEST_F(LanguageChecks, RefuseBrokenFiles) {
  write_good(true);
  const auto expect_refused = [&](const char* file, const std::string& text, const std::string& words) {
    write(file, text);
    EXPECT_THAT([&] { read_language_training(folder_.path()); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(file), HasSubstr(words))));
    write_good(true);
  };
  expect_refused("request.json", R"({"recipe": {"stages": 3}})", "is not the request of a training");
  expect_refused("request.json", R"({"recipe": {"stages": [], "tokenizer": {"vocabulary": 0}}})", "vocabulary of 0");
  expect_refused("history.csv", "step,training_loss\n1,2\n", "has no column 'validation_loss'");
  expect_refused("history.csv", "step,training_loss,validation_loss\n1,2\n", "a line has 2 cells, and the first one 3");
  expect_refused("history.csv", "step,training_loss,validation_loss\n1,2,x\033y\n", "is no number");
  expect_refused("history.csv", "step,training_loss,validation_loss\n1.5,2,3\n", "'step' is 1.5");
  expect_refused("history.csv", "step,training_loss,validation_loss\n1,2,3", "its last line has no end");
  std::filesystem::remove(folder_.path() / "training" / "history.csv");
  EXPECT_THAT([&] { read_language_training(folder_.path()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the training has not ended")));
}

// The page

template <typename Subject>
std::string table_of(std::span<const Check<Subject>> checks) {
  std::string table = "| check | question |\n| --- | --- |\n";
  for (const Check<Subject>& check : checks) table += fmt::format("| `{}` | {} |\n", check.name, check.question);
  return table;
}

/// The tables are written by hand; this prints the right ones where they differ.
TEST(ChecksPage, ListsEveryCheck) {
  const std::string page = read_text_file(GAINLENS_SOURCE_DIR "/docs/analyses/check.md");
  for (const std::string& table : {table_of(sweep_checks()), table_of(recommender_checks()),
                                   table_of(experiment_checks()), table_of(language_checks()), table_of(unit_checks())})
    EXPECT_THAT(page, HasSubstr(table)) << table;
}

}  // namespace checks_test
}  // namespace gainlens::analyses
