// BERT4Rec through the commands that read recommenders.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace gainlens::testing {
namespace bert4rec_commands_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class Bert4RecCommands : public ::testing::Test {
 protected:
  std::vector<std::string> training(const std::vector<std::string>& more) const {
    std::vector<std::string> words = tiny_training(data_, run_, 2, {"--backbone", "bert4rec"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "items.txt", tiny_histories(6, 4));
  std::string run_ = folder_.path() / "run";
};

TEST_F(Bert4RecCommands, ARunGoesThroughEveryCommand) {
  const std::vector<std::string> words =
      training({"--arm", "plain,bft,gate,popularity", "--warm-up", "1", "--seeds", "2", "--json", "--quiet"});
  const ProgramResult trained = run_gainlens(words);
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  const std::string stored = bytes_of(run_ + "/run.h5");
  EXPECT_EQ(run_gainlens(words).exit_code, 0);
  EXPECT_EQ(bytes_of(run_ + "/run.h5"), stored);
  EXPECT_EQ(Json::parse(bytes_of(run_ + "/request.json")).at("training").at("mask_probability"), 0.2);
  const std::string items = write_file(folder_.path() / "items.json", "[3, 66, 67]");  // 67: the mask
  const std::string beyond = write_file(folder_.path() / "beyond.json", "[3, 68]");
  const std::string out = folder_.path() / "out.safetensors", csv = folder_.path() / "best.csv";
  for (const Json& seed : Json::parse(trained.out).at("seeds")) {
    const std::string arm = seed.at("arm");
    if (seed.at("seed") != 1 || arm == "popularity") continue;
    SCOPED_TRACE(arm);
    const std::string checkpoint = run_ + "/" + arm + "/seed-1";
    const ProgramResult evaluated =
        run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_, "--json"});
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
    for (const auto& [name, value] : seed.at("test").items())
      EXPECT_EQ(Json::parse(evaluated.out).at(name), value) << name;
    EXPECT_EQ(run_gainlens(
                  {"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_, "--top-k", "66", "--out", csv})
                  .exit_code,
              0);
    EXPECT_THAT(bytes_of(csv), AllOf(HasSubstr("user0,1,"), Not(HasSubstr(",67,")), Not(HasSubstr(",0,"))));
    const Json inspected = Json::parse(run_gainlens({"inspect", checkpoint, "--json"}).out);
    EXPECT_EQ(inspected.at("backbone"), "bert4rec");
    EXPECT_EQ(inspected.at("arm"), arm);
    EXPECT_THAT(run_gainlens({"hooks", checkpoint}).out, HasSubstr("mlm_head.ln.hook_normalized"));
    const ProgramResult captured =
        run_gainlens({"capture", checkpoint, "--tokens", items, "--hooks", "*", "--out", out});
    EXPECT_EQ(captured.exit_code, 0) << captured.error;
    expect_refusal_line(run_gainlens({"capture", checkpoint, "--tokens", beyond, "--hooks", "*", "--out", out + "2"}),
                        "68");
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"k-by-frequency", run_, "--data", data_, "--placebo", "step-0"},
        {"error-by-precision", run_, "--data", data_},
        {"sweep", run_, "--data", data_, "--out", folder_.path() / "swept"},
        {"report", folder_.path() / "swept"},
        {"compare", run_},
        {"report", run_},
        {"inspect", run_}}) {
    const ProgramResult result = run_gainlens(command);
    EXPECT_EQ(result.exit_code, 0) << command.front() << ": " << result.error;
  }

  // Beside a run of another backbone.
  const std::string sasrec = run_ + "-sasrec";
  const ProgramResult other =
      run_gainlens(tiny_training(data_, sasrec, 2, {"--arm", "bft", "--warm-up", "1", "--seeds", "2", "--quiet"}));
  ASSERT_EQ(other.exit_code, 0) << other.error;
  expect_refusal_line(run_gainlens({"k-by-frequency", run_, "--data", data_, "--placebo", sasrec}),
                      "has the backbone sasrec, and the model bert4rec");
  EXPECT_THAT(run_gainlens({"compare", run_ + ":plain", sasrec + ":bft"}).out, HasSubstr("(sasrec against bert4rec)"));
}

TEST_F(Bert4RecCommands, GridsAndOtherBackbones) {
  ASSERT_EQ(run_gainlens(training({"--grid", "mask_probability=0.2,0.5", "--seeds", "2", "--quiet"})).exit_code, 0);
  const ProgramResult read = run_gainlens({"sensitivity", run_});
  EXPECT_EQ(read.exit_code, 0) << read.error;
  EXPECT_THAT(read.out, AllOf(HasSubstr("(bert4rec)"), HasSubstr("mask_probability")));
  expect_refusal_line(run_gainlens(tiny_training(data_, run_, 2, {})), "bert4rec");
  expect_refusal_line(run_gainlens(tiny_training(data_, run_ + "2", 2, {"--mask-probability", "0.3"})),
                      "--mask-probability: backbone sasrec has no such setting");
  run_ += "3";
  expect_refusal_line(run_gainlens(training({"--mask-probability", "1"})), "must be above 0 and below 1");
  expect_refusal_line(run_gainlens(training({"--positions", "1"})), "'positions' is 1");
}

}  // namespace bert4rec_commands_test
}  // namespace gainlens::testing
