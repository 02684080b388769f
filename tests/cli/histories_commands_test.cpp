// make-histories and gain-by: data whose conditions are known, and what arms gain under each of them.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace histories_commands_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class HistoriesCommands : public ::testing::Test {
 protected:
  ProgramResult make(const std::vector<std::string>& more, const std::string& out) const {
    std::vector<std::string> words = {"make-histories", "--out", folder_.path() / out};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  std::string file(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "items.txt", "x 1 2 3 4 5 6\ny 6 5 4\nz 1 7 2 8 3\n");
};

/// Users who were left out are named apart: the line speaks of those that were read.
TEST_F(HistoriesCommands, UsersThatWereLeftOutAreNotSaidToBeThere) {
  const std::string data = write_file(folder_.path() / "short.txt", "x 1 2 3 4 5 6\ny 6 5 4\nz 1 7\n");
  const ProgramResult thin = make({"--data", data, "--density", "0.5", "--seed", "1"}, "thin");
  ASSERT_EQ(thin.exit_code, 0) << thin.error;
  EXPECT_THAT(thin.error, HasSubstr("1 user"));
  EXPECT_THAT(thin.out, HasSubstr("of 2 users; none of these is lost\n"));
}

TEST_F(HistoriesCommands, ADataSetIsThinnedOrGetsNoise) {
  const ProgramResult thin = make({"--data", data_, "--density", "0.5", "--seed", "1"}, "thin");
  ASSERT_EQ(thin.exit_code, 0) << thin.error;
  EXPECT_THAT(thin.out,
              AllOf(HasSubstr(" of 8 training items kept ("), HasSubstr("%), of 3 users; none of these is lost\n")));
  EXPECT_THAT(bytes_of(file("thin")), AllOf(StartsWith("1 "), HasSubstr(" 5 6\n2 6 5 4\n3 "), HasSubstr(" 8 3\n")));
  const ProgramResult noisy = make({"--data", data_, "--noise", "1", "--json"}, "noisy");
  ASSERT_EQ(noisy.exit_code, 0) << noisy.error;
  const Json json = Json::parse(noisy.out);
  EXPECT_EQ(json.at("replaced"), 8);
  EXPECT_EQ(json.at("training_items"), 8);
  EXPECT_EQ(json.at("lost_users"), 0);
  EXPECT_EQ(run_gainlens({"inspect", file("noisy")}).exit_code, 0);
}

TEST_F(HistoriesCommands, SyntheticHistoriesComeWithWhatFiltersReach) {
  const std::vector<std::string> words = {"--synthetic", "--noise",   "0.3,2",  "--users", "60",
                                          "--items",     "60",        "--seed", "4",       "--items-file",
                                          file("truth"), "--longest", "12"};
  const ProgramResult text = make(words, "walk");
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("60 users, 60 items, "), HasSubstr("\nexact: "), HasSubstr("\nalike: "),
                              HasSubstr("\nconstant: ")));
  EXPECT_THAT(bytes_of(file("truth")), StartsWith("item,noise,position_1,position_2\n1,0.3,"));
  std::vector<std::string> again = words;
  std::filesystem::remove(file("truth"));
  again.emplace_back("--json");
  const ProgramResult json = make(again, "walk-again");
  ASSERT_EQ(json.exit_code, 0) << json.error;
  EXPECT_EQ(bytes_of(file("walk-again")), bytes_of(file("walk")));
  EXPECT_GT(Json::parse(json.out).at("filters").at("exact").at("hr@10").at("mean"), 0);
}

TEST_F(HistoriesCommands, WrongRequestsGetOneLine) {
  expect_refused(make({"--data", data_, "--density", "0"}, "x"), "--density: 0; must be above 0, and at most 1");
  expect_refused(make({"--data", data_, "--noise", "1.5"}, "x"), "--noise: 1.5; must be from 0 to 1");
  expect_refused(make({"--data", data_}, "x"), "give --density or --noise");
  expect_refused(make({"--data", data_, "--noise", "0.1", "--density", "1"}, "x"), "give one of --density and --noise");
  expect_refused(make({"--data", data_, "--noise", "0.1,0.2"}, "x"), "with --data it is one share");
  expect_refused(make({"--data", data_, "--noise", "0.1", "--users", "9"}, "x"),
                 "--users: is an option of --synthetic");
  expect_refused(make({"--synthetic", "--noise", "0"}, "x"), "--noise: 0; must be 0.001 to 100");
  expect_refused(make({"--synthetic", "--noise", "0.3,0"}, "x"), "without noise there is nothing to filter");
  expect_refused(make({"--synthetic"}, "x"), "--noise: is missing");
  expect_refused(make({"--synthetic", "--noise", "1e-300"}, "x"), "--noise: 1e-300; must be 0.001 to 100");
  expect_refused(make({"--synthetic", "--noise", "1e300"}, "x"), "--noise: 1e+300; must be 0.001 to 100");
  expect_refused(make({"--synthetic", "--noise", "0.3,1x"}, "x"), "--noise: '1x' is no finite number");
  expect_refused(make({"--synthetic", "--noise", "1", "--density", "0.5"}, "x"), "--density: is an option of --data");
  expect_refused(make({"--noise", "1"}, "x"), "give --data or --synthetic");
  expect_refused(make({"--synthetic", "--data", data_, "--noise", "1"}, "x"), "give one of --data and --synthetic");
  EXPECT_FALSE(std::filesystem::exists(file("x")));
}

TEST_F(HistoriesCommands, NoFileIsReplaced) {
  const std::string before = bytes_of(data_), folder = folder_.path() / "folder", link = folder_.path() / "link";
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("nowhere", link);
  for (const char* name : {"items.txt", "folder", "link"}) {
    expect_refused(make({"--data", data_, "--density", "0.5"}, name), "exists; choose another name or remove it");
    expect_refused(make({"--synthetic", "--noise", "1", "--items-file", file(name)}, "x"),
                   "--items-file: " + file(name) + " exists; choose another name or remove it");
  }
  expect_refused(make({"--data", data_, "--density", "0.5"}, "none/x"), "--out: there is no folder");
  expect_refused(make({"--data", data_, "--density", "0.5"}, "x/"), "--out: ");
  expect_refused(make({"--data", data_, "--density", "0.5"}, std::string(300, 'x')), "cannot be the name of a file");
  expect_refused(make({"--data", data_, "--density", "0.5"}, "x.txt.gz"),
                 "the file is plain text; give it a name that ends in");
  expect_refused(make({"--synthetic", "--noise", "1", "--items-file", file("folder/../x")}, "x"),
                 "is the file of --out; choose another name");
  EXPECT_EQ(bytes_of(data_), before);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(file("x")));
}

TEST_F(HistoriesCommands, GainsAreComparedByCondition) {
  ASSERT_EQ(make({"--synthetic", "--noise", "0.3,2", "--users", "60", "--items", "60"}, "walk").exit_code, 0);
  std::vector<std::string> runs;
  for (const std::string share : {"0", "0.5"}) {
    ASSERT_EQ(make({"--data", file("walk"), "--noise", share}, "walk-" + share).exit_code, 0);
    const ProgramResult trained = run_gainlens({"train",         "recommend",
                                                "--data",        file("walk-" + share),
                                                "--out",         file("run-" + share),
                                                "--arm",         "plain,textbook,least-error",
                                                "--warm-up",     "1",
                                                "--seeds",       "3",
                                                "--epochs",      "2",
                                                "--width",       "8",
                                                "--inner-width", "16",
                                                "--batch",       "16",
                                                "--threads",     "1",
                                                "--quiet"});
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    runs.push_back(share + "=" + file("run-" + share));
  }
  const ProgramResult text =
      run_gainlens({"gain-by", runs[1], runs[0], "--axis", "share of noise", "--out", file("page")});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, StartsWith("Each arm against plain, by share of noise.\n"));
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'),
            2 + 2 * 2 * 2 + 1);  // the last line says what is missing
  EXPECT_TRUE(std::filesystem::exists(file("page") + "/gain-by.svg"));
  const ProgramResult json = run_gainlens({"gain-by", runs[0], runs[1], "--arm", "textbook", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.error;
  const Json found = Json::parse(json.out);
  ASSERT_EQ(found.at("candidates").size(), 1u);
  EXPECT_EQ(found.at("candidates")[0].at("points")[1].at("condition"), 0.5);

  expect_refused(run_gainlens({"gain-by", file("run-0")}), "must be a number, '=' and the folder of a run");
  expect_refused(run_gainlens({"gain-by", "0.5x=" + file("run-0")}), "must be a number");
  expect_refused(run_gainlens({"gain-by", "1e308=" + file("run-0")}), "must be 0, or 1e-09 to 1e+09");
  expect_refused(run_gainlens({"gain-by", runs[0], "0.3=" + file("run-0") + "/"}), "is given for two conditions");
  expect_refused(run_gainlens({"gain-by", runs[0], "--arm", "textbook,textbook"}), "--arm: 'textbook' is given twice");
  expect_refused(run_gainlens({"gain-by", runs[0], "0=" + file("run-0.5")}), "condition 0: stands twice for textbook");
  expect_refused(run_gainlens({"gain-by", runs[0], "--arm", "textbok"}), "has no arm 'textbok'");
  expect_refused(run_gainlens({"gain-by", runs[0], "--arm", "plain"}), "--arm: plain is the baseline");
  expect_refused(run_gainlens({"gain-by", runs[0], "--baseline", "bft"}), "bft");
}

}  // namespace histories_commands_test
}  // namespace gainlens::testing
