// Ranks that were made elsewhere: evaluate recommend --ranks and --ranks-out, compare FILE.csv --data.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class GivenRanks : public ::testing::Test {
 protected:
  GivenRanks() {
    std::ofstream data(data_);
    data << "userId,movieId\n";
    for (int user = 0; user < 40; ++user) {
      for (int i = 0; i < 4 + user % 4; ++i) data << "=u" << user << "," << (user * 5 + i) % 12 + 1 << "\n";
    }
  }
  ProgramResult call(std::vector<std::string> words, const std::vector<std::string>& more = {}) {
    words.insert(words.end(), {"--data", data_});
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::string data_ = folder_.path() / "ring.csv";
  std::string run_ = folder_.path() / "run";
};

TEST_F(GivenRanks, AreThoseOfTheModelThatWroteThem) {
  ASSERT_EQ(run_gainlens(tiny_training(data_, run_, 2, {"--seeds", "3", "--arm", "plain,markov"})).exit_code, 0);
  std::string all = "user,target,rank,seed\n";
  for (const std::string seed : {"0", "1", "2"}) {
    const std::string ranks = folder_.path() / ("ranks" + seed + ".csv");
    const auto model =
        call({"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-" + seed, "--json"}, {"--ranks-out", ranks});
    ASSERT_EQ(model.exit_code, 0) << model.error;
    EXPECT_THAT(bytes_of(ranks), StartsWith("user,target,rank,seed\n'=u0,4,"));
    const auto given = call({"evaluate", "recommend", "--ranks", ranks, "--json"});
    ASSERT_EQ(given.exit_code, 0) << given.error;
    const Json of_model = Json::parse(model.out), of_file = Json::parse(given.out);
    EXPECT_EQ(of_file.at("users"), 40);
    for (const char* metric : {"hr@5", "hr@10", "ndcg@10", "mrr", "mrr@10"}) {
      EXPECT_EQ(of_file.at(metric), of_model.at(metric)) << metric;
      EXPECT_EQ(of_file.at("seeds").at(0).at(metric), of_model.at(metric)) << metric;
    }
    all += bytes_of(ranks).substr(std::string("user,target,rank,seed\n").size());
  }
  const std::string theirs = write_file(folder_.path() / "theirs.csv", all);
  EXPECT_THAT(call({"evaluate", "recommend", "--ranks", theirs}).out,
              AllOf(StartsWith("users              40; of 12 items\n"), HasSubstr("seeds              3; means"),
                    HasSubstr("hr@10              ")));

  // The file is compared as the run is that its models come from.
  const auto of_run = run_gainlens({"compare", run_ + ":markov", run_ + ":plain", "--json"});
  const auto of_file = call({"compare", run_ + ":markov", theirs, "--json"});
  ASSERT_EQ(of_file.exit_code, 0) << of_file.error;
  const Json one = Json::parse(of_run.out).at("comparisons").at(0),
             other = Json::parse(of_file.out).at("comparisons").at(0);
  EXPECT_EQ(other.at("candidate"), "theirs");
  EXPECT_EQ(one.at("metrics"), other.at("metrics"));
  EXPECT_EQ(one.at("strata"), other.at("strata"));
  // Deviations over seeds are shown of a file too.
  const std::string words = call({"compare", theirs, run_ + ":markov"}).out;
  const double deviation = one.at("metrics").at("mrr").at("seeds").at("candidate").at("standard_deviation");
  EXPECT_THAT(words, HasSubstr(fmt::format("({:.4f})", deviation)));
  const std::string again = write_file(folder_.path() / "again.csv", all);
  EXPECT_THAT(call({"compare", theirs, again}).out, HasSubstr("again against theirs on ring"));
  EXPECT_EQ(call({"compare", theirs, again, "--out", folder_.path() / "page"}).exit_code, 0);
  EXPECT_THAT(bytes_of(folder_.path() / "page" / "report.html"), HasSubstr("again"));
}

TEST_F(GivenRanks, WrongRequestsAreOneLine) {
  const std::string ranks = write_file(folder_.path() / "a.csv", "user,target,rank\n=u0,4,1\n=u1,11,1\n");
  expect_refused(call({"evaluate", "recommend", "--ranks", ranks}),
                 "a.csv: line 3: user '=u1' has the target '11', and the test item of the data is '10'");
  const std::string stranger = write_file(folder_.path() / "b.csv", "user,target,rank\n\x1b[2J,4,1\n");
  expect_refused(call({"evaluate", "recommend", "--ranks", stranger}),
                 "b.csv: line 2: user '\\x1b[2J' is not among the");
  expect_refused(call({"compare", ranks, stranger}), "a.csv: line 3: user '=u1'");
  expect_refused(run_gainlens({"compare", ranks, stranger}), "a.csv: is a file of ranks, whose users and targets are");
  expect_refused(call({"compare", run_, run_}), "--data: is for files of ranks (*.csv or *.tsv), and none is given");
  expect_refused(run_gainlens({"compare", run_, "--ties", "item"}), "--ties: is an option of --data; leave it out");
  expect_refused(call({"evaluate", "recommend"}), "give --checkpoint or --ranks");
  expect_refused(call({"evaluate", "recommend", "--ranks", ranks, "--checkpoint", run_}),
                 "give one of --checkpoint and --ranks");
  for (const std::vector<std::string>& idle : std::vector<std::vector<std::string>>{
           {"--keep-seen"}, {"--other-split"}, {"--layout", "iclrec"}, {"--ranks-out", "x.csv"}, {"--top-k", "3"}})
    expect_refused(call({"evaluate", "recommend", "--ranks", ranks}, idle), idle[0] + ": is an option of --checkpoint");
  expect_refused(call({"evaluate", "recommend", "--checkpoint", run_, "--ranks-out", folder_.path() / "x.txt"}),
                 "the file is plain CSV; give it a name that ends in .csv");
  expect_refused(call({"evaluate", "recommend", "--checkpoint", run_, "--ranks-out", ranks}),
                 "exists; choose another name or remove it");
}

}  // namespace
}  // namespace gainlens::testing
