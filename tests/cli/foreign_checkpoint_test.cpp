// evaluate recommend of models of other programs, and what it says of lists, names and splits.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/tiny_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace foreign_checkpoint_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string golden = GAINLENS_SOURCE_DIR "/tests/golden/foreign/";

std::vector<std::string> evaluation(const std::string& model, const std::string& layout,
                                    std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"evaluate", "recommend", "--checkpoint", golden + model + "/model.pth",
                                    "--layout", layout,      "--data",       golden + "tiny.inter"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ForeignCheckpoint, IsJudgedBesideOthers) {
  const TemporaryFolder folder;
  const std::string ranks = folder.path() / "theirs.csv";
  const auto found = run_gainlens(
      evaluation("recbole", "recbole", {"--items", golden + "recbole/items.csv", "--ranks-out", ranks, "--json"}));
  ASSERT_EQ(found.exit_code, 0) << found.error;
  const Json metrics = Json::parse(found.out);
  EXPECT_EQ(metrics.at("users"), 40);
  EXPECT_EQ(metrics.at("split"), "unknown");
  EXPECT_EQ(metrics.at("coverage@10"), 1.0);  // 10 of 14 items for each of 40 users
  EXPECT_GT(metrics.at("novelty@10"), 3);
  EXPECT_GT(metrics.at("popular@10"), 0.1);
  // Their own ranks are the same model.
  const auto compared =
      run_gainlens({"compare", golden + "recbole/ranks.csv", ranks, "--data", golden + "tiny.inter", "--json"});
  EXPECT_EQ(compared.exit_code, 0) << compared.error;
}

TEST(ForeignCheckpoint, WithoutItsItemsItIsRefused) {
  const auto found = run_gainlens(evaluation("recbole", "recbole"));
  EXPECT_EQ(found.exit_code, 2);
  EXPECT_THAT(found.error, HasSubstr("give --items FILE.csv"));
  const auto numbered = run_gainlens(evaluation("pmixer-pre", "pmixer"));
  EXPECT_EQ(numbered.exit_code, 2);
  EXPECT_THAT(numbered.error, HasSubstr("the checkpoint numbers its items"));
}

class StoredNames : public ::testing::Test {
 protected:
  void write_data(const std::string& changed) {
    std::ofstream data(data_);
    data << "user,item,time\n";
    for (int user = 0; user < 40; ++user) {
      for (int i = 0; i < 4 + user % 4; ++i) {
        const std::string item = "i" + std::to_string((user * 5 + i) % 12);
        data << "u" << user << "," << (item == "i7" ? changed : item) << "," << 100 * i + user << "\n";
      }
    }
  }
  TemporaryFolder folder_;
  std::string data_ = folder_.path() / "ring.csv", run_ = folder_.path() / "run";
};

TEST_F(StoredNames, AreComparedWithThoseOfTheData) {
  write_data("i7");
  ASSERT_EQ(run_gainlens(tiny_training(data_, run_, 2, {})).exit_code, 0);
  const std::string folder = run_ + "/plain/seed-0";
  EXPECT_EQ(bytes_of(folder + "/items.txt"), "i0\ni1\ni10\ni11\ni2\ni3\ni4\ni5\ni6\ni7\ni8\ni9\n");
  const std::vector<std::string> evaluate = {"evaluate", "recommend", "--checkpoint", folder, "--data", data_};
  EXPECT_THAT(run_gainlens(evaluate).out, AllOf(HasSubstr("coverage@10"), HasSubstr("popular@10")));
  write_data("j7");
  const auto other = run_gainlens(evaluate);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, HasSubstr("'j7' is an item of the data alone"));
  write_data("i7");
  write_file(folder + "/items.txt", "i0\n");
  EXPECT_THAT(run_gainlens(evaluate).error, HasSubstr("items.txt: is not as the training wrote it"));
  std::filesystem::remove(folder + "/items.txt");  // as in earlier versions
  EXPECT_EQ(run_gainlens(evaluate).exit_code, 0);
}

TEST_F(StoredNames, TheSplitOfATrainingIsCompared) {
  write_data("i7");
  ASSERT_EQ(run_gainlens(tiny_training(data_, run_, 2, {"--arm", "plain,markov", "--split", "temporal:0.7"})).exit_code,
            0);
  const std::vector<std::string> evaluate = {"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-0",
                                             "--data",   data_};
  const auto other = run_gainlens(evaluate);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, HasSubstr("--split temporal:0.7"));
  std::vector<std::string> same = evaluate;
  same.insert(same.end(), {"--split", "temporal:0.7", "--json"});
  const auto found = run_gainlens(same);
  ASSERT_EQ(found.exit_code, 0) << found.error;
  EXPECT_EQ(Json::parse(found.out).at("split"), "same");
  const auto compared = run_gainlens({"compare", run_, "--metrics", "hr@10"});
  EXPECT_EQ(compared.exit_code, 0) << compared.error;
  const auto inspected = run_gainlens({"inspect", data_, "--split", "temporal:0.7"});
  EXPECT_THAT(inspected.out, HasSubstr("for training alone"));
  const auto continued = run_gainlens(tiny_training(data_, run_, 2, {"--arm", "plain,markov"}));
  EXPECT_EQ(continued.exit_code, 2);
  EXPECT_THAT(continued.error, AllOf(HasSubstr("/data/"), Not(HasSubstr("newer version"))));
}

}  // namespace foreign_checkpoint_test
}  // namespace gainlens::testing
