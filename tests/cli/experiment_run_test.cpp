// What each command says of the run of an experiment whose units are documents.
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/run_proof.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace experiment_run_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class ExperimentRunCommands : public ::testing::Test {
 protected:
  ExperimentRunCommands() {
    runfile::write_experiment_run(run_, made_experiment_run({.arms = {"plain", "bft", "gate"}}));
  }

  void expect_refused(std::vector<std::string> arguments, const std::string& reason) const {
    testing::expect_refused(run_gainlens(arguments), reason);
  }

  TemporaryFolder folder_;
  std::string run_ = (folder_.path() / "run.h5").string();
};

TEST_F(ExperimentRunCommands, CompareSpeaksOfDocuments) {
  const ProgramResult result = run_gainlens({"compare", run_, "--baseline", "plain", "--resamples", "50"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("bft against plain on made texts, 3 seeds, 40 documents"),
                                HasSubstr("gate against plain"), HasSubstr("better"), HasSubstr("other documents"),
                                Not(HasSubstr("user"))));
  const ProgramResult json =
      run_gainlens({"compare", run_, "--metrics", "loss", "--margin", "0.5", "--resamples", "50", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.error;
  const Json first = Json::parse(json.out).at("comparisons").at(0);
  EXPECT_EQ(first.at("unit"), "document");
  ASSERT_EQ(first.at("scores").size(), 1u);
  const Json& loss = first.at("scores").at("loss");
  EXPECT_EQ(loss.at("decision").at("decision"), "better");
  EXPECT_EQ(loss.at("decision").at("p"), loss.at("difference").at("p"));
  EXPECT_EQ(loss.at("decision").at("after_holm"), true);
  EXPECT_EQ(loss.at("equivalence").at("equivalent"), true);
  EXPECT_THAT(json.out, Not(HasSubstr("user")));
}

TEST_F(ExperimentRunCommands, CompareWarnsOnceOfWhatIsNotProven) {
  const ProgramResult result = run_gainlens({"compare", run_ + ":plain", run_ + ":bft", "--resamples", "50"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "gainlens: warning: " + run_ +
                              ": run.h5 has no checksum beside it; what it holds is not proven.\n"
                              "gainlens: warning: " +
                              run_ +
                              ": run.h5 was given without its folder: the files of its trainings were not compared.\n");
}

TEST_F(ExperimentRunCommands, CompareWritesAPage) {
  const std::string page = folder_.path() / "page";
  const ProgramResult result = run_gainlens({"compare", run_, "--resamples", "50", "--out", page});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr(page + "/report.html\n"));
  EXPECT_THAT(result.out, HasSubstr("bft against plain on made texts"));
  EXPECT_THAT(bytes_of(page + "/report.html"), AllOf(HasSubstr("bft against plain on made texts, 3 seeds"),
                                                     HasSubstr("Not everything of these runs was proven. " + run_ +
                                                               ": run.h5 has no checksum beside it")));
  const Json summary = Json::parse(bytes_of(page + "/summary.json"));
  const ProgramResult json = run_gainlens({"compare", run_, "--resamples", "50", "--json"});
  for (const Json& comparison : Json::parse(json.out).at("comparisons"))
    EXPECT_EQ(summary.at("runs").at(comparison.at("candidate").get<std::string>() + " against plain on made texts"),
              comparison);
}

TEST_F(ExperimentRunCommands, CompareRefusesWhatItCannotAnswer) {
  expect_refused({"compare", run_ + ":plain"}, "one arm alone");
  expect_refused({"compare", run_, "--baseline", "bff"}, "did you mean 'bft'?");
  expect_refused({"compare", run_, "--metrics", "mrr"}, "'mrr' is no score of the run, which has loss, right");
  expect_refused({"compare", run_, "--metrics", "loss,loss"}, "--metrics: 'loss' is given twice");
  expect_refused({"compare", run_, "--margin", "0"}, "--margin: 0; must be above 0");
  expect_refused({"compare", run_, "--out", folder_.path()}, "is the folder of a run; choose another folder");
  expect_refused({"compare", run_, "--edges", "paper"}, "--edges: is for recommender runs");
  expect_refused({"compare", run_, "--paper", "none"}, "--paper: is for recommender runs");
  const std::string other = (folder_.path() / "other.h5").string();
  runfile::write_recommend_run(other, made_recommend_run());
  expect_refused({"compare", run_, other}, "give recommender runs alone, or experiments alone");
  expect_refused({"compare", other, "--margin", "1"}, "--margin: is for experiments");
}

TEST_F(ExperimentRunCommands, InspectSaysWhatItHolds) {
  const ProgramResult result = run_gainlens({"inspect", run_});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("run of an experiment"), HasSubstr("made texts (40 documents)"),
                                HasSubstr("plain, bft, gate"), HasSubstr("loss, right"), HasSubstr("9 of 9 trainings"),
                                HasSubstr("there is no run.h5.sha256")));
  runfile::write_checksum_beside(run_);
  EXPECT_THAT(run_gainlens({"inspect", folder_.path()}).out, HasSubstr("as it was written (sha256)"));
}

TEST_F(ExperimentRunCommands, CheckNamesWhatIsWrong) {
  const auto check = [&] { return run_gainlens({"check", run_, "--json"}); };
  const auto found = [&](const std::string& name) {
    const Json checks = Json::parse(check().out).at("checks");
    for (const Json& one : checks)
      if (one.at("name") == name) return one;
    return Json();
  };
  const ProgramResult sound = check();
  EXPECT_EQ(sound.exit_code, 0) << sound.error;
  EXPECT_EQ(found("files").at("known"), false);
  EXPECT_THAT(found("files").at("finding").get<std::string>(),
              AllOf(HasSubstr("run.h5 has no checksum beside it"), HasSubstr("run.h5 was given without its folder")));
  EXPECT_EQ(found("scores").at("finding"), "every finished training has 2 scores of 40 documents");

  runfile::ExperimentRun run = made_experiment_run({.arms = {"plain", "bft"}});
  run.results[4].reset();
  run.results[1]->test.at("loss") += 1e-12;  // rounding, as far as a reader can tell
  runfile::write_experiment_run(run_, run);
  const ProgramResult wrong = check();
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.error, HasSubstr("3 of 9 checks found something"));
  EXPECT_EQ(found("finished").at("finding"), "1 of 6 trainings are not finished: bft seed 1");
  EXPECT_EQ(found("finished").at("advice"), "repeat the gainlens train command, which continues");
  EXPECT_THAT(found("means").at("finding").get<std::string>(),
              HasSubstr("a metric is not the mean of its scores: plain seed 1; of the first, loss is "));
  EXPECT_THAT(found("seeds").at("finding").get<std::string>(), HasSubstr("bft has 2; it takes 3"));
  EXPECT_THAT(run_gainlens({"check", run_}).out, HasSubstr("found: 1 of 6 trainings are not finished"));
}

TEST_F(ExperimentRunCommands, CheckRefusesWhatCannotBeRead) {
  expect_refused({"check", folder_.path() / "none"}, "no such file or folder");
  write_file(folder_.path() / "request.json", made_experiment_run().request.dump());
  runfile::write_checksum_beside(run_);
  std::string bytes = bytes_of(run_);
  bytes[bytes.size() / 2] ^= 1;
  write_file(run_, bytes);
  expect_refused({"check", folder_.path()}, "run.h5: its sha256 is ");
}

TEST_F(ExperimentRunCommands, OtherCommandsSayWhichOnesReadIt) {
  const std::string reason = "is the run of an experiment; gainlens compare, check, report and inspect read it";
  for (const char* command : {"sinks", "sink-vs-k", "audit"}) expect_refused({command, run_}, reason);
  const ProgramResult page = run_gainlens({"report", run_, "--out", folder_.path() / "report"});
  EXPECT_EQ(page.exit_code, 0) << page.error;
  EXPECT_THAT(bytes_of(folder_.path() / "report" / "report.html"), HasSubstr("gate against plain on made texts"));
  expect_refused({"report", run_, "--paper", "none"}, "--paper: is for other runs");
  expect_refused({"report", run_, "/no/such/folder"}, "give it alone");
}

}  // namespace experiment_run_test
}  // namespace gainlens::testing
