#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

class TrainFinetune : public ::testing::Test {
 protected:
  std::string questions(int count) const {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      const std::string color = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
      lines += Json{{"prompt", "Number " + std::to_string(i) + " is " + color + ". What is it?"}, {"answers", {color}}}
                   .dump() +
               "\n";
    }
    return write_file(folder_.path() / "questions.jsonl", lines);
  }
  Words command(const Words& more, const std::string& rows = "8") const {
    Words words = {"train", "finetune", demo, "--task", questions(30), "--train-rows", rows};
    const Words rest = {"--validation-rows", "3", "--test-rows", "4", "--learning-rate", "1e-3"};
    words.insert(words.end(), rest.begin(), rest.end());
    words.insert(words.end(), {"--max-new", "3", "--out", out()});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string out() const { return folder_.path() / "run"; }
  TemporaryFolder folder_;
};

TEST_F(TrainFinetune, PrintsATableAndKeepsARunThatOthersRead) {
  const ProgramResult made = run_gainlens(command({"--arm", "sft,focal", "--noise", "0", "40", "--seeds", "2"}));
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_EQ(std::count(made.out.begin(), made.out.end(), '\n'), 6);
  EXPECT_THAT(made.out, AllOf(HasSubstr("sft/np0"), HasSubstr("focal/np40"), HasSubstr("exact match")));
  EXPECT_THAT(made.error, HasSubstr("8 rows to learn from, 3 to choose the best epoch by, 4 to test on"));
  const ProgramResult again =
      run_gainlens(command({"--arm", "sft,focal", "--noise", "0", "40", "--seeds", "2", "--quiet", "--json"}));
  const Json json = Json::parse(again.out);
  ASSERT_EQ(json.at("trainings").size(), 8u);
  for (const Json& one : json.at("trainings")) {
    EXPECT_EQ(one.at("seconds"), 0.0);
    EXPECT_TRUE(one.at("metrics").contains("f1"));
  }
  const ProgramResult compared = run_gainlens({"compare", out(), "--baseline", "sft/np0", "--resamples", "50"});
  EXPECT_EQ(compared.exit_code, 0) << compared.error;
  EXPECT_THAT(compared.out, HasSubstr("2 seeds, 4 questions"));
  EXPECT_THAT(run_gainlens({"inspect", out()}).out, HasSubstr("questions.jsonl (4 questions)"));
  const std::string job = out() + "/focal/np40/seed-1";
  EXPECT_EQ(run_gainlens({"generate", job, "--prompt", "Number 3 is", "--max-new", "2"}).exit_code, 0);
  expect_refused(run_gainlens(command({"--epochs", "3", "--quiet"})), "epochs");
}

TEST_F(TrainFinetune, BadInputIsRefusedInOneLine) {
  const auto refused = [&](const Words& words, const std::string& reason) {
    Words quiet = words;
    quiet.emplace_back("--quiet");
    const ProgramResult result = run_gainlens(quiet);
    EXPECT_EQ(result.exit_code, 2) << result.error;
    EXPECT_THAT(result.error, HasSubstr("gainlens: error: ")) << reason;
    EXPECT_THAT(result.error, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(out()));
  };
  const Words base = {"train", "finetune", demo, "--out", out()};
  const auto with = [&](Words more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  refused(with({"--task", "squad"}), "--data: is missing");
  refused(with({"--task", "sqaud", "--data", "x"}), "--data: --task names the file already");
  refused(with({"--task", "text.txt"}), "must be squad, nq or a file *.jsonl");
  refused(with({"--task", "squad", "--data", questions(2)}), "questions.jsonl");
  refused(command({"--arm", "dpo"}), "--arm: 'dpo'; must be one of sft");
  refused(command({"--noise", "-1"}), "--noise: -1");
  refused(command({}, "100"), "--train-rows: 100 questions; only");
  refused(command({"--max-length", "4"}), "longer than 4 tokens");
  refused(command({"--epochs", "0"}), "--epochs: 0");
}

}  // namespace
}  // namespace gainlens::testing
