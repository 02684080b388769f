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

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace given_ranks_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
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

/// The file without its last column.
std::string without_last_column(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) text += line.substr(0, line.rfind(',')) + "\n";
  return text;
}

TEST_F(GivenRanks, OneListStandsForEverySeedOnRequest) {
  ASSERT_EQ(run_gainlens(tiny_training(data_, run_, 2, {"--seeds", "3", "--arm", "plain,markov"})).exit_code, 0);
  const std::string ranks = folder_.path() / "ranks.csv";
  const auto model =
      call({"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-1", "--json"}, {"--ranks-out", ranks});
  ASSERT_EQ(model.exit_code, 0) << model.error;
  const std::string one = write_file(folder_.path() / "one.csv", without_last_column(ranks));
  expect_refused(call({"compare", run_ + ":plain", one}),
                 "one.csv:one: names no seed, and " + run_ + ":plain has the seeds 0 to 2; if nothing random made");
  const auto compared = call({"compare", run_ + ":plain", one, "--deterministic", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  const Json found = Json::parse(compared.out);
  EXPECT_THAT(found.at("notes").at(0).get<std::string>(), StartsWith("one is one list of ranks, which stands for"));
  const Json metric = found.at("comparisons").at(0).at("metrics").at("mrr").at("seeds").at("candidate");
  EXPECT_NEAR(metric.at("mean").get<double>(), Json::parse(model.out).at("mrr").get<double>(), 1e-7);  // float32
  EXPECT_EQ(metric.at("standard_deviation"), 0);
  // As the baseline too, and on the page.
  const auto other = call({"compare", one, run_, "--deterministic"}, {"--out", folder_.path() / "page"});
  ASSERT_EQ(other.exit_code, 0) << other.error;
  EXPECT_THAT(other.out, AllOf(StartsWith("one is one list of ranks"), HasSubstr("plain against one on ring"),
                               HasSubstr("markov against one on ring")));
  EXPECT_THAT(bytes_of(folder_.path() / "page" / "report.html"), HasSubstr("<p>one is one list of ranks, which"));
  EXPECT_THAT(bytes_of(folder_.path() / "page" / "summary.json"), HasSubstr("\"one is one list of ranks, which"));
  expect_refused(call({"compare", run_, ranks, "--deterministic"}), "--deterministic: is for ranks that name no seed");
  EXPECT_EQ(call({"compare", one, ranks, "--deterministic"}).exit_code, 0);  // two files of ranks
  expect_refused(run_gainlens({"compare", run_, "--deterministic"}), "--deterministic: is for files of ranks");
}

TEST_F(GivenRanks, NewUsersAloneAreRankedOnRequest) {
  ASSERT_EQ(run_gainlens(tiny_training(data_, run_, 2, {})).exit_code, 0);
  const auto rank = [&](const std::string& lines, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"evaluate",     "recommend",
                                      "--checkpoint", run_ + "/plain/seed-0",
                                      "--data",       write_file(folder_.path() / "new.csv", "user,item\n" + lines)};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  const std::string two = "a,10\na,2\na,12\na,1\nb,7\nb,2\nb,9\nc,1\n";
  expect_refused(rank(two, {}), "new.csv: the data set has 6 items; the checkpoint was made for 12");
  const std::string best = folder_.path() / "best.csv";
  const auto found = rank(two, {"--other-split", "--json", "--top-k", "12", "--out", best});
  ASSERT_EQ(found.exit_code, 0) << found.error;
  EXPECT_THAT(found.error, AllOf(HasSubstr("1 user is left out"), HasSubstr("6 of the 12 items of ")));
  EXPECT_EQ(Json::parse(found.out).at("users"), 2);
  EXPECT_FALSE(Json::parse(found.out).contains("coverage@10"));
  // Each user gets all that she has not had.
  const std::string lists = bytes_of(best);
  EXPECT_EQ(std::count(lists.begin(), lists.end(), '\n'), 1 + 8 + 9) << lists;
  EXPECT_THAT(lists, AllOf(HasSubstr(",5,"), Not(HasSubstr("\na,1,10,"))));
  // The ranks are those of the same users in a file with all items.
  const std::string ranks = folder_.path() / "few.csv", of_all = folder_.path() / "all.csv";
  ASSERT_EQ(rank(two, {"--other-split", "--ranks-out", ranks}).exit_code, 0);
  std::string rest;
  for (int item = 1; item <= 12; ++item) rest += "d," + std::to_string(item) + "\n";
  ASSERT_EQ(rank(two + rest, {"--other-split", "--ranks-out", of_all}).exit_code, 0);
  EXPECT_THAT(bytes_of(of_all), StartsWith(bytes_of(ranks)));
  expect_refusal_line(rank("a,10\na,2\na,13\na,14\n", {"--other-split"}),
                      "new.csv: the item '13' and 1 other are not among the 12 of the model");
}

TEST_F(GivenRanks, ValidationItemsAreComparedOnRequest) {
  // Item 13 is in no training, and the last user is too short.
  std::ofstream(data_, std::ios::app) << "x,1\nx,2\nx,3\nx,13\ny,1\ny,2\n";
  const auto trained =
      run_gainlens(tiny_training(data_, run_, 2, {"--seeds", "3", "--arm", "plain,markov", "--quiet"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_EQ(trained.error,
            "gainlens: " + data_ + ": 1 user is left out, with fewer than 3 interactions; 41 users stay\n");
  const auto of_test = run_gainlens({"compare", run_ + ":markov", run_ + ":plain", "--json"});
  const auto compared = run_gainlens({"compare", run_ + ":markov", run_ + ":plain", "--validation", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  const Json found = Json::parse(compared.out), metrics = found.at("comparisons").at(0).at("metrics");
  EXPECT_EQ(found.at("held_out"), "validation");
  EXPECT_NE(metrics, Json::parse(of_test.out).at("comparisons").at(0).at("metrics"));
  std::string all = "user,target,rank,seed\n";
  double sum = 0;
  for (const std::string seed : {"0", "1", "2"}) {
    const std::string ranks = folder_.path() / ("ranks" + seed + ".csv");
    const auto model = call({"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-" + seed, "--json"},
                            {"--ranks-out", ranks, "--validation"});
    ASSERT_EQ(model.exit_code, 0) << model.error;
    sum += Json::parse(model.out).at("mrr").get<double>();
    all += bytes_of(ranks).substr(std::string("user,target,rank,seed\n").size());
  }
  EXPECT_NEAR(metrics.at("mrr").at("seeds").at("candidate").at("mean").get<double>(), sum / 3, 1e-7);  // float32
  // A file of ranks of validation items gives the same.
  const std::string theirs = write_file(folder_.path() / "theirs.csv", all);
  const auto of_file = call({"compare", run_ + ":markov", theirs, "--validation", "--json"});
  ASSERT_EQ(of_file.exit_code, 0) << of_file.error;
  EXPECT_EQ(Json::parse(of_file.out).at("comparisons").at(0).at("metrics"), metrics);
  EXPECT_EQ(Json::parse(of_file.out).at("comparisons").at(0).at("strata"), found.at("comparisons").at(0).at("strata"));
  EXPECT_THAT(run_gainlens({"compare", run_, "--validation"}).out,
              StartsWith("Ranks are those of the validation item"));
  expect_refused(run_gainlens({"compare", run_, "--validation", "--paper", "Toys"}),
                 "--paper: the paper's numbers are");
  // The test item of x is in no training item.
  EXPECT_THAT(run_gainlens({"compare", run_, "--edges", "0,5"}).out,
              AllOf(HasSubstr("\n1 never trained: 0               1          0.0"), HasSubstr("\n2: 1 to 5 ")));
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
                 "the file is CSV; give it a name that ends in .csv, not in .txt");
  expect_refused(call({"evaluate", "recommend", "--checkpoint", run_, "--ranks-out", ranks}),
                 "exists; choose another name or remove it");
}

}  // namespace given_ranks_test
}  // namespace gainlens::testing
