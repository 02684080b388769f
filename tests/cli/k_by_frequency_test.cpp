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
namespace k_by_frequency_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

/// Users of 66 items; items with small numbers stand in more histories.
std::string interactions(int users = 60) {
  std::string text;
  for (int user = 0; user < users; ++user) {
    text += "user" + std::to_string(user);
    for (int i = 0; i < 8 + user % 4; ++i) {
      const int at = (user * 7 + i * 5) % 80;
      text += " " + std::to_string((at * at) / 96 + 1);
    }
    text += "\n";
  }
  return text;
}

class KByFrequency : public ::testing::Test {
 protected:
  /// @param warm_up  steps; empty for arms without a filter
  void train(const std::string& out, const std::vector<std::string>& more, const std::string& warm_up = "1") const {
    std::vector<std::string> words = more;
    if (!warm_up.empty()) words.insert(words.end(), {"--warm-up", warm_up});
    train_tiny(data_, out, 2, words);
  }
  ProgramResult read(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"k-by-frequency", run, "--quiet", "--data", data_};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "items.txt", interactions());
  std::string run_ = folder_.path() / "run", other_ = folder_.path() / "other";
};

TEST_F(KByFrequency, EveryLayerOfEveryArmWithAFilterIsRead) {
  train(run_, {"--arm", "plain,bft", "--seeds", "2"});
  const std::string out = folder_.path() / "page";
  const ProgramResult text = read(run_, {"--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(StartsWith("arm bft, seeds 0, 1: 60 users, "), HasSubstr("have a position"),
                              HasSubstr("\n    1  lambda "), HasSubstr("-0.082\n"), HasSubstr("layer 0, K: "),
                              HasSubstr("Frequency is an input of the filter"), Not(HasSubstr("plain"))));
  for (const char* file : {"/report.html", "/k-by-frequency.svg", "/summary.json"})
    EXPECT_TRUE(std::filesystem::exists(out + file)) << file;
  EXPECT_THAT(bytes_of(out + "/tables/k-by-frequency.csv"), StartsWith("layer,quantity,placebo,bin,items,"));

  const ProgramResult found = read(run_, {"--json", "--bins", "3"});
  ASSERT_EQ(found.exit_code, 0) << found.error;
  const Json arm = Json::parse(found.out).at("arms").at(0);
  EXPECT_EQ(arm.at("arm"), "bft");
  EXPECT_EQ(arm.at("users"), 60);
  ASSERT_EQ(arm.at("layers").size(), 2u);
  for (const Json& layer : arm.at("layers")) {
    for (const char* quantity : {"gain", "precision"}) {
      const Json& one = layer.at(quantity);
      ASSERT_EQ(one.at("seeds").size(), 2u);
      const double mean = (one.at("seeds")[0].at("rho").get<double>() + one.at("seeds")[1].at("rho").get<double>()) / 2;
      EXPECT_NEAR(one.at("rho").get<double>(), mean, 1e-12);
      EXPECT_LE(one.at("interval")[0], one.at("rho"));
      EXPECT_GE(one.at("interval")[1], one.at("rho"));
      EXPECT_LE(one.at("bins").size(), 3u);
      EXPECT_TRUE(one.at("partial_rho").is_number());
    }
    EXPECT_GT(layer.at("gain").at("bins")[0].at("mean"), 0);
    EXPECT_LT(layer.at("gain").at("bins")[0].at("mean"), 1);
  }
  // The precision before the first layer grows with the count, from which it begins, in every seed.
  EXPECT_GT(arm.at("layers")[0].at("precision").at("rho"), 0.9);
  EXPECT_EQ(read(run_, {"--json", "--threads", "1"}).out, read(run_, {"--json", "--threads", "3"}).out);

  const ProgramResult one = read(run_, {"--json", "--only-seeds", "1"});
  ASSERT_EQ(one.exit_code, 0) << one.error;
  const Json alone = Json::parse(one.out).at("arms").at(0).at("layers");
  ASSERT_EQ(alone.at(0).at("gain").at("seeds").size(), 1u);
  for (const std::size_t layer : {0, 1})
    EXPECT_EQ(alone.at(layer).at("gain").at("seeds")[0], arm.at("layers")[layer].at("gain").at("seeds")[1]);
  for (const char* wrong : {"2", "one", "-1", "1.0", "1x"})
    EXPECT_THAT(read(run_, {"--only-seeds", wrong}).error,
                HasSubstr("is no finished seed of " + run_ + "; those are 0, 1"))
        << wrong;
  EXPECT_THAT(read(run_, {"--only-seeds", "1,1"}).error, HasSubstr("--only-seeds: "));
}

TEST_F(KByFrequency, APlaceboStandsBesideTheModel) {
  train(run_, {"--arm", "bft"});
  train(other_, {"--arm", "plain,bft", "--seeds", "2", "--initial-precision", "count"});
  const ProgramResult text = read(run_, {"--placebo", other_});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("placebo " + other_ + ", arm bft\n"), HasSubstr("rho less that of the placebo"),
                              Not(HasSubstr("Frequency is an input"))));
  const auto quantity = [&](const ProgramResult& result, int layer) {
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return Json::parse(result.out).at("arms").at(0).at("layers").at(layer).at("gain");
  };
  const Json beside = quantity(read(run_, {"--placebo", other_ + ":bft", "--json"}), 1);
  const Json alone = quantity(read(other_, {"--json"}), 1).at("seeds").at(0);
  const Json& placebo = beside.at("placebos").at(0);
  EXPECT_EQ(placebo.at("rho"), alone.at("rho"));
  EXPECT_NEAR(placebo.at("difference").get<double>(), beside.at("rho").get<double>() - alone.at("rho").get<double>(),
              1e-12);
  const std::string copy = folder_.path() / "copy";
  std::filesystem::copy(run_, copy, std::filesystem::copy_options::recursive);
  const Json same = quantity(read(run_, {"--placebo", copy, "--json"}), 1).at("placebos").at(0);
  EXPECT_EQ(same.at("difference"), 0.0);
  EXPECT_EQ(same.at("difference_interval"), (std::vector<double>{0, 0}));
}

TEST_F(KByFrequency, StepZeroAndAPermutedTauBaseArePlacebos) {
  train(run_, {"--arm", "bft"});
  train(run_, {"--arm", "bft", "--variant", "permuted:permute_popularity=true"});
  const std::string out = folder_.path() / "page";
  const ProgramResult text = read(run_, {"--placebo", "step-0", "--placebo", run_ + ":bft/permuted", "--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(StartsWith("arm bft, seed 0: "), HasSubstr("\nstep 0            0  K "),
                              HasSubstr("\nbft/permuted      1  lambda "), Not(HasSubstr("arm bft/permuted"))));
  EXPECT_THAT(bytes_of(out + "/tables/k-by-frequency.csv"),
              AllOf(HasSubstr("\n0,gain,step 0,1,"), HasSubstr("\n1,precision,bft/permuted,1,")));
  const ProgramResult found = read(run_, {"--placebo", "step-0", "--placebo", run_ + ":bft/permuted", "--json"});
  const Json arm = Json::parse(found.out).at("arms").at(0);
  EXPECT_EQ(arm.at("placebos"), (std::vector<std::string>{"step 0", "bft/permuted"}));
  const Json& first = arm.at("layers")[0].at("precision");
  // At step 0 lambda is tau_range tau_base + ln 2, so it has the order of the counts exactly; permuted, it has not.
  EXPECT_GT(first.at("placebos")[0].at("rho"), 0.999);
  EXPECT_LT(std::abs(first.at("placebos")[1].at("rho").get<double>()), 0.6);
  EXPECT_EQ(read(run_, {"--placebo", "step-0", "--json"}).out, read(run_, {"--placebo", "step-0", "--json"}).out);
}

TEST_F(KByFrequency, AnotherNumberOfTheItemsCanTakeThePlaceOfTheCounts) {
  train(run_, {"--arm", "bft"});
  std::string values = "item,id\n";
  for (int item = 1; item <= 70; ++item) values += std::to_string(item) + "," + std::to_string(item) + "\n";
  const std::string file = write_file(folder_.path() / "values.csv", values);
  const ProgramResult text = read(run_, {"--against", file});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("layer 0, lambda: falls with id"), HasSubstr("against its id;")));
  expect_refused(read(run_, {"--against", write_file(folder_.path() / "few.csv", "item,id\n1,1\n")}),
                 "has no line for item");
}

TEST_F(KByFrequency, FewUsersGetNoInterval) {
  data_ = write_file(folder_.path() / "few.txt", interactions(20));
  train(run_, {"--arm", "bft"});
  const ProgramResult text = read(run_);
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, HasSubstr("layer 0, K: no interval: fewer than 30 users"));
}

TEST_F(KByFrequency, WrongRequestsGetOneLine) {
  train(run_, {"--arm", "plain,bft"});
  train(other_, {"--arm", "plain,gate"}, "");
  expect_refused(read(other_), other_ + ": has no filter: arms plain, gate; train one with --arm bft");
  expect_refused(read(run_, {"--arm", "plain"}), run_ + ": has no filter: arm plain; train one with --arm bft");
  expect_refused(read(run_, {"--arm", "btf"}), "has no arm 'btf', but plain, bft; did you mean 'bft'");
  expect_refused(read(run_ + "/run.h5"), "run.h5: is a file; give the folder of the run");
  expect_refused(read(run_ + "/bft/seed-0"), "seed-0");
  expect_refused(read(folder_.path() / "none"), "none: no such folder");
  expect_refused(read(run_, {"--groups", "5"}), "--groups: 5; must be 20 to 10000");
  expect_refused(read(run_, {"--bins", "1"}), "--bins: 1; must be 2 to 1000");
  expect_refused(read(run_, {"--min-item-count", "8"}), "is split otherwise than the data");
  expect_refused(read(run_, {"--placebo", other_}), other_ + ": has no filter");
  expect_refused(read(run_, {"--placebo", run_}), "--placebo: is arm bft of " + run_ + " itself");
  expect_refused(read(run_, {"--placebo", "step-0", "--placebo", "step-0"}), "--placebo: 'step-0' is given twice");
  expect_refused(read(run_, {"--placebo", run_ + ":bft"}), "--placebo: is arm bft of " + run_ + " itself");
  expect_refused(read(run_, {"--placebo", data_}), "--placebo: " + data_ + ": is a file");
  expect_refused(read(run_, {"--out", run_}), "is the folder of a run");
  const std::string seeds = folder_.path() / "seeds", split = folder_.path() / "split";
  train(seeds, {"--arm", "bft", "--seed", "4"});
  expect_refused(read(run_, {"--placebo", seeds}), "--placebo: " + seeds + ", arm bft, lacks seed 0");
  const std::string data = data_;
  data_ = write_file(folder_.path() / "more.txt", interactions() + "one 1 2 3 4\n");
  expect_refused(read(run_), "more.txt: is split otherwise than the data that " + run_ + " was trained on");
  train(split, {"--arm", "bft"});
  data_ = data;
  expect_refused(read(run_, {"--placebo", split}), "--placebo: " + split + " was trained on other data");
  const std::string shorter = folder_.path() / "shorter";
  train(shorter, {"--arm", "bft", "--positions", "2"});
  expect_refused(read(run_, {"--placebo", shorter}), "its models read other positions");
}

TEST_F(KByFrequency, AFilterThatIsNotInForceIsRefused) {
  train(run_, {"--arm", "bft"}, "100");
  expect_refused(read(run_), "its filter is not in force");
}

}  // namespace k_by_frequency_test
}  // namespace gainlens::testing
