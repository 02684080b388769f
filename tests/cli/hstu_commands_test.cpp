// HSTU through the commands that read recommenders.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace gainlens::testing {
namespace hstu_commands_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// The interactions of tiny_histories(6, 4), with times.
std::string timed_histories() {
  std::string text;
  for (int user = 0; user < 60; ++user) {
    for (int i = 0; i < 6 + user % 4; ++i)
      text += fmt::format("{}::{}::5::{}\n", user + 1, tiny_item(user, i), 978300000 + i * i * 7000);
  }
  return text;
}

class HstuCommands : public ::testing::Test {
 protected:
  std::vector<std::string> training(const std::string& data, const std::string& out,
                                    const std::vector<std::string>& more) const {
    // Without --inner-width, which arms without an MLP refuse.
    std::vector<std::string> words = {"train",
                                      "recommend",
                                      "--data",
                                      data,
                                      "--out",
                                      out,
                                      "--epochs",
                                      "2",
                                      "--width",
                                      "8",
                                      "--batch",
                                      "16",
                                      "--threads",
                                      "1",
                                      "--backbone",
                                      "hstu",
                                      "--attention-dropout",
                                      "0.1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TemporaryFolder folder_;
  std::string timed_ = write_file(folder_.path() / "ratings.dat", timed_histories());
  std::string timeless_ = write_file(folder_.path() / "items.txt", tiny_histories(6, 4));
  std::string run_ = folder_.path() / "run";
};

TEST_F(HstuCommands, ARunGoesThroughEveryCommand) {
  const std::vector<std::string> words = training(
      timed_, run_, {"--arm", "plain,ffn,bft,gate,popularity", "--warm-up", "1", "--seeds", "2", "--json", "--quiet"});
  const ProgramResult trained = run_gainlens(words);
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  const std::string stored = bytes_of(run_ + "/run.h5");
  EXPECT_EQ(run_gainlens(words).exit_code, 0);
  EXPECT_EQ(bytes_of(run_ + "/run.h5"), stored);
  const Json request = Json::parse(bytes_of(run_ + "/request.json"));
  EXPECT_EQ(request.at("training").at("estimator"), "sandwich");
  EXPECT_EQ(request.at("training").at("output_projection"), true);
  const std::string items = write_file(folder_.path() / "items.json", "[3, 66]");
  for (const Json& seed : Json::parse(trained.out).at("seeds")) {
    const std::string arm = seed.at("arm");
    if (seed.at("seed") != 1 || arm == "popularity") continue;
    SCOPED_TRACE(arm);
    const std::string checkpoint = run_ + "/" + arm + "/seed-1";
    const ProgramResult evaluated =
        run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", timed_, "--json"});
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
    for (const auto& [name, value] : seed.at("test").items())
      EXPECT_EQ(Json::parse(evaluated.out).at(name), value) << name;
    const Json inspected = Json::parse(run_gainlens({"inspect", checkpoint, "--json"}).out);
    EXPECT_EQ(inspected.at("backbone"), "hstu");
    EXPECT_EQ(inspected.at("arm"), arm);
    EXPECT_THAT(run_gainlens({"hooks", checkpoint}).out, HasSubstr("attn.hook_gated"));
    expect_refusal_line(run_gainlens({"capture", checkpoint, "--tokens", items, "--hooks", "*", "--out",
                                      folder_.path() / "out.safetensors"}),
                        "--no-time-bias");
    expect_refusal_line(run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", timeless_}), "");
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"k-by-frequency", run_, "--data", timed_, "--placebo", "step-0"},
        {"error-by-precision", run_, "--data", timed_},
        {"compare", run_},
        {"compare", run_, "--baseline", "ffn"},
        {"gain-by", "1=" + run_, "--baseline", "ffn"},
        {"report", run_},
        {"inspect", run_}}) {
    const ProgramResult result = run_gainlens(command);
    EXPECT_EQ(result.exit_code, 0) << command.front() << ": " << result.error;
  }
}

TEST_F(HstuCommands, ASweepNeedsASoftmax) {
  ASSERT_EQ(run_gainlens(training(timed_, run_, {"--quiet"})).exit_code, 0);
  expect_refusal_line(run_gainlens({"sweep", run_, "--data", timed_, "--out", run_ + "-sweep"}),
                      "plain/seed-0: its attention is no softmax");
}

TEST_F(HstuCommands, DataWithoutTimesNeedAModelWithoutThem) {
  expect_refusal_line(run_gainlens(training(timeless_, run_, {})),
                      "backbone hstu needs the time of each interaction; the data set has none");
  const ProgramResult trained =
      run_gainlens(training(timeless_, run_, {"--no-time-bias", "--arm", "plain,bft", "--quiet"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_EQ(Json::parse(bytes_of(run_ + "/request.json")).at("training").at("time_bias"), false);
  const std::string items = write_file(folder_.path() / "items.json", "[3, 66]"),
                    out = folder_.path() / "o.safetensors";
  const ProgramResult captured =
      run_gainlens({"capture", run_ + "/bft/seed-0", "--tokens", items, "--hooks", "*", "--out", out});
  EXPECT_EQ(captured.exit_code, 0) << captured.error;
  expect_refusal_line(run_gainlens(training(timed_, run_ + "2", {"--no-time-bias", "--time-bias", "true"})),
                      "--no-time-bias: --time-bias true is given too");
}

TEST_F(HstuCommands, OtherTimesAreRefused) {
  ASSERT_EQ(run_gainlens(training(timed_, run_, {"--arm", "bft", "--warm-up", "0", "--quiet"})).exit_code, 0);
  std::string text = timed_histories();
  text.replace(text.find("::978300000"), 11, "::978300001");
  const std::string moved = write_file(folder_.path() / "moved.dat", text);
  expect_refusal_line(run_gainlens(training(moved, run_, {"--arm", "bft", "--warm-up", "0", "--seeds", "2"})),
                      "/data/times");
  const std::vector<std::string> evaluate = {"evaluate", "recommend", "--checkpoint", run_ + "/bft/seed-0"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  expect_refusal_line(with(evaluate, {"--data", moved}), "has other times than the data");
  const ProgramResult wanted = with(evaluate, {"--data", moved, "--other-split", "--json"});
  EXPECT_EQ(wanted.exit_code, 0) << wanted.error;
  EXPECT_EQ(Json::parse(wanted.out).at("split"), "other times");
  EXPECT_EQ(with(evaluate, {"--data", timed_, "--json"}).exit_code, 0);
  for (const char* command : {"k-by-frequency", "error-by-precision"})
    expect_refusal_line(run_gainlens({command, run_, "--data", moved, "--quiet"}), "has other times than the data");
  EXPECT_EQ(run_gainlens(training(moved, run_ + "2", {"--no-time-bias", "--quiet"})).exit_code, 0);
  EXPECT_EQ(run_gainlens(training(timed_, run_ + "2", {"--no-time-bias", "--seeds", "2", "--quiet"})).exit_code, 0);
}

TEST_F(HstuCommands, GridsAndBadInput) {
  ASSERT_EQ(run_gainlens(training(timed_, run_,
                                  {"--arm", "bft", "--grid", "precision_place=presilu,multiplicative", "--seeds", "2",
                                   "--quiet"}))
                .exit_code,
            0);
  const ProgramResult read = run_gainlens({"sensitivity", run_});
  EXPECT_EQ(read.exit_code, 0) << read.error;
  EXPECT_THAT(read.out, AllOf(HasSubstr("(hstu)"), HasSubstr("precision_place")));
  const std::string other = run_ + "2";
  const auto refuse = [&](const std::vector<std::string>& more, const std::string& text) {
    expect_refusal_line(run_gainlens(training(timed_, other, more)), text);
  };
  refuse({"--arm", "textbook"}, "has no arm textbook");
  refuse({"--arm", "bft", "--estimator", "reml"}, "sandwich alone");
  refuse({"--arm", "bft", "--kriging", "per_dimension"}, "per_dimension");
  refuse({"--inner-width", "32"}, "--inner-width: has no effect, because arm plain has no MLP");
  refuse({"--precision-place", "multiplicative"}, "--precision-place: has no effect");
  refuse({"--dropout", "0.5"}, "backbone hstu takes at most 0.2");
  refuse({"--norm", "post"}, "--norm: backbone hstu has no such setting");
  for (const char* backbone : {"sasrec", "bert4rec"})
    expect_refusal_line(run_gainlens(tiny_training(timed_, other, 2, {"--backbone", backbone, "--arm", "ffn"})),
                        "arm ffn is for a backbone without an MLP");
  expect_refusal_line(run_gainlens(tiny_training(timed_, other, 2, {"--no-time-bias"})),
                      "--time-bias: backbone sasrec has no such setting");
}

}  // namespace hstu_commands_test
}  // namespace gainlens::testing
