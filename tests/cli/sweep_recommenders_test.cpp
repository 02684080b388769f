// gainlens sweep of trained recommenders, and the report of it.
#include "cli/tiny_checkpoint.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace sweep_recommenders_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class SweepRecommenders : public ::testing::Test {
 protected:
  void train(const std::vector<std::string>& more) const { train_tiny(data_, run_, 2, more); }
  ProgramResult sweep(const std::string& model, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"sweep", model, "--data", data_, "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::ranges::find(more, "--out") == more.end()) words.insert(words.end(), {"--out", out_});
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "items.txt", tiny_histories(5, 9));
  std::string run_ = folder_.path() / "run", out_ = folder_.path() / "swept";
};

TEST_F(SweepRecommenders, EveryArmWithAttentionIsSweptAndReported) {
  train({"--arm", "plain,bft,popularity", "--seeds", "2", "--warm-up", "1"});
  const ProgramResult first = sweep(run_);
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_THAT(first.out,
              AllOf(StartsWith(out_ + "/run.h5: 4 models of 2 arms swept\n\narm plain, seeds 0, 1: 60 users"),
                    HasSubstr("\narm bft, seeds 0, 1"), HasSubstr("K of the model"), HasSubstr("with these models"),
                    Not(HasSubstr("popularity")), Not(HasSubstr("MASK"))));
  const std::string stored = bytes_of(out_ + "/run.h5");
  const ProgramResult again = sweep(run_, {"--arm", "plain,bft", "--threads", "1"});
  EXPECT_THAT(again.out, HasSubstr("complete, nothing to do"));
  EXPECT_TRUE(bytes_of(out_ + "/run.h5") == stored);

  const ProgramResult reported = run_gainlens({"report", out_});
  ASSERT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_EQ(reported.out, out_ + "/report/report.html\n");
  for (const char* file : {"evidence-by-length.svg", "masses-by-length.pdf", "evidence-by-last-item.png",
                           "evidence-by-test-item.svg", "summary.json", "tables/heads.tex"})
    EXPECT_TRUE(std::filesystem::exists(out_ + "/report/" + file)) << file;
  const Json summary = Json::parse(bytes_of(out_ + "/report/summary.json"));
  const Json found = Json::parse(sweep(run_, {"--json"}).out).at("arms");
  EXPECT_EQ(summary.at("runs").at("bft").at("user_attention"), found.at(1));  // what sweep prints is what report says
  EXPECT_EQ(found.at(0).at("heads").size(), 4u);
  EXPECT_TRUE(found.at(0).at("heads").at(0).at("model_gain").is_null());
  EXPECT_GT(found.at(1).at("heads").at(0).at("model_gain").at("mean").at("value").get<double>(), 0);
  EXPECT_THAT(run_gainlens({"inspect", out_}).out,
              AllOf(HasSubstr("sweep of recommenders"), HasSubstr("2 layers of 2 heads"), HasSubstr("4 of 4 trainings"),
                    HasSubstr("as it was written (sha256)"), HasSubstr("usable             yes")));
}

TEST_F(SweepRecommenders, ATrainingAloneIsThatOfTheRun) {
  train({"--arm", "bft", "--seeds", "2", "--warm-up", "1"});
  ASSERT_EQ(sweep(run_).exit_code, 0);
  const std::string one = folder_.path() / "one";
  const ProgramResult alone = sweep(run_ + "/bft/seed-1", {"--out", one, "--json"});
  ASSERT_EQ(alone.exit_code, 0) << alone.error;
  const Json arm = Json::parse(alone.out).at("arms").at(0);
  EXPECT_EQ(arm.at("seeds"), std::vector<int>{1});
  const Json all = Json::parse(sweep(run_, {"--json"}).out).at("arms").at(0);
  const Json& deviation = all.at("heads").at(2).at("n_eff").at("mean").at("seed_deviation");
  const double mean = all.at("heads").at(2).at("n_eff").at("mean").at("value"),
               own = arm.at("heads").at(2).at("n_eff").at("mean").at("value");
  EXPECT_NEAR(std::abs(own - mean) * std::sqrt(2), deviation.get<double>(), 1e-9);  // of two seeds

  // A damaged file is not replaced, and the way out that the message names is one.
  const std::string file = one + "/run.h5", stored = bytes_of(file);
  std::string damaged = stored;
  damaged[stored.size() / 2] = static_cast<char>(~damaged[stored.size() / 2]);
  write_file(file, damaged);
  const std::vector<std::string> same = {"--out", one, "--json"};
  expect_refused(sweep(run_ + "/bft/seed-1", same), "delete it and repeat the command that wrote it");
  std::filesystem::remove(file);
  EXPECT_EQ(sweep(run_ + "/bft/seed-1", same).out, alone.out);
  EXPECT_EQ(bytes_of(file), stored);
}

TEST_F(SweepRecommenders, WrongRequestsGetOneLine) {
  train({"--arm", "plain,bft,popularity", "--warm-up", "1"});
  expect_refused(sweep(run_, {"--arm", "btf"}), "has no arm 'btf', but plain, bft, popularity; did you mean 'bft'");
  expect_refused(sweep(run_, {"--arm", "popularity"}), "arm popularity is no model with attention");
  expect_refused(run_gainlens({"sweep", run_, "--out", out_}),
                 "--data: is missing; give the interactions that " + run_);
  const std::vector<std::vector<std::string>> language = {{"--text", data_},
                                                          {"--tokens", data_},
                                                          {"--lengths", "32"},
                                                          {"--samples", "2"},
                                                          {"--nested"},
                                                          {"--spread"},
                                                          {"--bos", "never"},
                                                          {"--dtype", "float64"},
                                                          {"--statistics", "all"},
                                                          {"--kernel", "auto"},
                                                          {"--estimator", "kish"},
                                                          {"--score-noise", "0.1"},
                                                          {"--no-nll"},
                                                          {"--per-query"},
                                                          {"--layers", "0:1"},
                                                          {"--stop-at-layer", "1"},
                                                          {"--stream-weights"},
                                                          {"--allow-extrapolation"},
                                                          {"--ignore-config-key", "a"}};
  for (const std::vector<std::string>& words : language)
    expect_refused(sweep(run_, words), words.front() + ": is for language models, and " + run_ + " is a recommender");
  EXPECT_FALSE(std::filesystem::exists(out_));
  expect_refused(sweep(run_, {"--out", run_}), "is the folder of a run");
  expect_refused(sweep(run_, {"--out", data_ + "/swept"}), "Not a directory");
  expect_refused(sweep(run_, {"--out", run_ + "/plain/swept"}), "lies among the checkpoints");
  expect_refused(sweep(run_ + "/plain/seed-0", {"--arm", "plain"}), "is one training alone; leave the option out");
  std::filesystem::copy(run_ + "/plain/seed-0", folder_.path() / "copy", std::filesystem::copy_options::recursive);
  expect_refused(sweep(folder_.path() / "copy"), "copy: lies in no run of gainlens train recommend");
  std::filesystem::create_directory(folder_.path() / "empty");
  expect_refusal_line(sweep(folder_.path() / "empty"), "empty");
  expect_refused(sweep(folder_.path() / "nowhere"), "nowhere: no such folder");
  expect_refused(sweep(tiny_checkpoint.string()), "--data: is for recommenders, and ");
  expect_refused(run_gainlens({"sweep", tiny_checkpoint.string(), "--ties", "item", "--out", out_}),
                 "--ties: is an option of --data; leave it out");
  ASSERT_EQ(sweep(run_, {"--arm", "plain"}).exit_code, 0);
  expect_refused(sweep(run_), "--out: " + out_ + " holds the sweep of other models");
  expect_refused(run_gainlens({"report", out_, "--at", "1k"}), "--at: is for sweeps, and " + out_);
  expect_refused(run_gainlens({"report", out_, "--paper"}), "--paper: is for other runs");
  expect_refused(run_gainlens({"report", out_, run_, "--out", folder_.path() / "page"}),
                 "is a sweep of recommenders; give it alone");
  for (const char* command : {"sinks", "sink-vs-k", "audit", "check"})
    expect_refusal_line(run_gainlens({command, out_}),
                        "is a sweep of recommenders; gainlens report and inspect read it");
  for (const char* command : {"compare", "sensitivity"})
    EXPECT_EQ(run_gainlens({command, out_}).exit_code, 2) << command;
  const std::string other = folder_.path() / "more.txt";
  data_ = write_file(other, tiny_histories(5, 9) + "one 1 2 3 4\n");
  expect_refused(sweep(run_), "more.txt: is split otherwise than the data that " + run_ + " was trained on");
  std::filesystem::remove(run_ + "/run.h5");
  expect_refused(sweep(run_), "has no run.h5: the training has not finished");
}

}  // namespace sweep_recommenders_test
}  // namespace gainlens::testing
