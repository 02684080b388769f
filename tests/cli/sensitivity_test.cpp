// `gainlens train recommend --grid` and `gainlens sensitivity`.
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
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace sensitivity_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Users who go round a ring of 23 items.
std::string ring() {
  std::string text;
  for (int user = 0; user < 40; ++user) {
    text += "user" + std::to_string(user);
    for (int i = 0; i < 4 + user % 4; ++i) text += " " + std::to_string((user * 5 + i) % 23 + 1);
    text += "\n";
  }
  return text;
}

class SensitivityOfARun : public ::testing::Test {
 protected:
  ProgramResult train(const std::vector<std::string>& more, const std::string& seeds = "3") const {
    std::vector<std::string> words = tiny_training(data_, run_, 2, more);
    words.insert(words.end(), {"--quiet", "--warm-up", "1", "--seeds", seeds});
    return run_gainlens(words);
  }
  ProgramResult read(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"sensitivity", run_};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "ring.txt", ring());
  std::string run_ = folder_.path() / "run";
};

TEST_F(SensitivityOfARun, AGridIsTrainedBesideItsReferenceAndRead) {
  const ProgramResult trained = train({"--arm", "bft", "--grid", "initial-gain=0.50,9e-1,0.95", "--grid", "warm_up=0"});
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_EQ(trained.error,
            "gainlens: --grid: initial_gain 0.9: the run's own settings, which are the reference and no variant\n");
  for (const char* place : {"seed-2", "initial_gain-0.5/seed-0", "initial_gain-0.95/seed-2", "warm_up-0/seed-1"})
    EXPECT_TRUE(fs::exists(fs::path(run_) / "bft" / place / "result.safetensors")) << place;
  EXPECT_FALSE(fs::exists(run_ + "/bft/initial_gain-0.9"));

  const std::string page = folder_.path() / "page";
  const ProgramResult text = read({"--out", page});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(StartsWith("arm bft on ring (sasrec), HR@10, seeds 0 to 2, 40 users; margin ±1%\n"),
                              HasSubstr("\nK0 (initial_gain): "), HasSubstr("\n  0.95      3     0."),
                              HasSubstr("\nwarm-up (warm_up): "), HasSubstr("With 3 seeds and 40 users")));
  for (const char* file : {"/report.html", "/sensitivity-flat.svg", "/summary.json", "/tables/sensitivity.csv"})
    EXPECT_TRUE(fs::exists(page + file)) << file;

  // A later call adds settings, and does nothing again.
  const std::string before = bytes_of(run_ + "/bft/initial_gain-0.5/seed-0/result.safetensors");
  const ProgramResult more = train({"--arm", "bft", "--grid", "initial_gain=0.7,0.5", "--json"});
  ASSERT_EQ(more.exit_code, 0) << more.error;
  for (const Json& seed : Json::parse(more.out).at("seeds"))
    EXPECT_EQ(seed.at("seconds") == 0, seed.value("variant", "") != "initial_gain-0.7") << seed;
  EXPECT_TRUE(bytes_of(run_ + "/bft/initial_gain-0.5/seed-0/result.safetensors") == before);

  const ProgramResult found = read({"--json", "--metric", "mrr", "--margin", "5", "--arm", "bft"});
  ASSERT_EQ(found.exit_code, 0) << found.error;
  const Json json = Json::parse(found.out);
  EXPECT_EQ(json.at("metric"), "mrr");
  EXPECT_EQ(json.at("margin"), 0.05);
  std::vector<double> values;
  for (const Json& setting : json.at("knobs").at(0).at("settings")) values.push_back(setting.at("value"));
  EXPECT_THAT(values, ElementsAre(0.5, 0.7, 0.95));

  // The numbers are those of compare.
  const ProgramResult compared = run_gainlens(
      {"compare", run_ + ":bft", run_ + ":bft/initial_gain-0.7", "--metrics", "mrr", "--resamples", "50", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  const Json ratio = Json::parse(compared.out).at("comparisons").at(0).at("metrics").at("mrr").at("log_ratio");
  EXPECT_EQ(json.at("knobs").at(0).at("settings").at(1).at("log_ratio"), ratio);

  // On the validation items too.
  const ProgramResult before_test = read({"--json", "--metric", "mrr", "--validation"});
  ASSERT_EQ(before_test.exit_code, 0) << before_test.error;
  const Json chosen = Json::parse(before_test.out);
  EXPECT_EQ(chosen.at("held_out"), "validation");
  const ProgramResult of_validation = run_gainlens({"compare", run_ + ":bft", run_ + ":bft/initial_gain-0.7",
                                                    "--metrics", "mrr", "--resamples", "50", "--validation", "--json"});
  const Json other = Json::parse(of_validation.out).at("comparisons").at(0).at("metrics").at("mrr").at("log_ratio");
  EXPECT_EQ(chosen.at("knobs").at(0).at("settings").at(1).at("log_ratio"), other);
  EXPECT_NE(other, ratio);
  EXPECT_THAT(read({"--validation", "--out", page}).out, StartsWith("Ranks are those of the validation items"));
  EXPECT_THAT(bytes_of(page + "/report.html"), HasSubstr("<p>Ranks are those of the validation items"));
}

TEST_F(SensitivityOfARun, TheGridOfThePaperHasSevenKnobs) {
  const ProgramResult result = train({"--arm", "bft", "--grid", "paper"}, "1");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json variants = Json::parse(bytes_of(run_ + "/request.json")).at("variants");
  std::vector<std::string> keys;
  for (const auto& [name, changes] : variants.items()) {
    ASSERT_EQ(changes.size(), 1u) << name;
    if (std::ranges::count(keys, changes.begin().key()) == 0) keys.push_back(changes.begin().key());
  }
  EXPECT_THAT(keys, ElementsAre("initial_decay", "initial_gain", "most_precision", "most_process_noise",
                                "precision_learning_rate", "prior_variance", "warm_up"));
  EXPECT_GE(variants.size(), 7u * 3);
  const ProgramResult found = read({"--json"});
  ASSERT_EQ(found.exit_code, 0) << found.error;
  EXPECT_EQ(Json::parse(found.out).at("knobs").size(), 7u);
  for (const Json& knob : Json::parse(found.out).at("knobs")) {
    EXPECT_TRUE(knob.at("paper").is_string());
    EXPECT_THAT(knob.at("settings").size() + 1, AllOf(::testing::Ge(3u), ::testing::Le(6u)));
    EXPECT_NE(knob.at("answer"), "differs");  // one seed decides nothing
  }
}

TEST_F(SensitivityOfARun, WrongGridsGetOneLineAndTrainNothing) {
  const auto refused = [this](const std::vector<std::string>& grid, const std::string& reason,
                              const std::string& arm = "bft") {
    std::vector<std::string> words = {"--arm", arm};
    for (const std::string& text : grid) words.insert(words.end(), {"--grid", text});
    expect_refused(train(words), reason);
  };
  refused({"papre"}, "--grid: 'papre'; must be paper, or a setting with its values, such as initial_gain=0.5");
  refused({"initial_gain=0.5,"}, "--grid: 'initial_gain=0.5,'; must be paper, or");
  refused({"initial_gain="}, "must be paper, or");
  refused({"=0.5"}, "must be paper, or");
  refused({"initial_gian=0.5"}, "'initial_gian' is not a known key; did you mean 'initial_gain'");
  refused({"initial_gain=high"}, "--grid initial_gain: 'initial_gain' is \"high\"; must be a number");
  refused({"initial_gain=0.5,1.5"}, "--grid initial_gain: 'initial_gain' is 1.5; must be");
  refused({"warm_up=0.5"}, "--grid warm_up: 'warm_up' is 0.5; must be a whole number");
  refused({"initial_gain=0.5,0.50"}, "--grid initial_gain: 0.5 stands twice");
  refused({"initial_gain=0.9,0.90"}, "--grid initial_gain: 0.9 stands twice");
  refused({"initial_gain=0.5", "initial_gain=0.7,0.5"}, "--grid initial_gain: 0.5 stands twice");
  refused({"most_precision=0.0001"}, "--grid most_precision: 'least_precision' is 0.001");
  refused({"initial_gain=0.5"}, "--grid initial_gain: changes nothing in arm plain, because", "plain,bft");
  refused({"paper"}, "--grid most_process_noise: changes nothing in arm gate, because arm gate does not read it",
          "gate");
  refused({"width=4"}, "--grid width: changes nothing in arm markov, because arm markov is not trained", "markov");
  expect_refused(train({"--arm", "bft", "--grid", "initial_gain=0.5", "--variant", "a:initial_gain=0.5"}),
                 "--variant initial_gain-0.5: has the same settings as variant a");
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(SensitivityOfARun, WrongRequestsGetOneLine) {
  expect_refused(read(), "no such file");
  ASSERT_EQ(train({"--arm", "bft", "--variant", "two:initial_gain=0.5,warm_up=0"}, "1").exit_code, 0);
  expect_refused(read(), run_ + ": has no finished seed of arm bft without a variant, the reference");
  ASSERT_EQ(train({"--arm", "plain,bft"}, "1").exit_code, 0);
  expect_refused(read(), "no variant of arm bft can be compared with the reference (bft/two: it changes 2 settings");
  ASSERT_EQ(train({"--arm", "bft", "--grid", "initial_gain=0.5"}, "1").exit_code, 0);
  const ProgramResult text = read();
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("left out:\n  bft/two: it changes 2 settings: initial_gain, warm_up\n"),
                              HasSubstr("nothing can be decided")));
  expect_refused(read({"--arm", "btf"}), "has no arm 'btf', but plain, bft; did you mean 'bft'");
  expect_refused(read({"--arm", "plain"}), "has no variants of arm plain");
  expect_refused(read({"--metric", "hr@11"}), "'hr@11'; must be one of");
  for (const char* margin : {"0", "-1", "100", "nan"}) expect_refused(read({"--margin", margin}), "--margin: ");
  expect_refused(read({"--out", run_}), "is the folder of a run");
  expect_refused(read({"--out", run_ + "/bft"}), "lies");
}

}  // namespace sensitivity_test
}  // namespace gainlens::testing
