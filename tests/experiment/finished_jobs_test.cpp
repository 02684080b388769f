#include "experiment/job.h"

#include "experiment/result_file.h"
#include "runfile/experiment_run.h"
#include "support/file_bytes.h"
#include "support/recording_listener.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::experiment {
namespace finished_jobs_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A training of so many epochs, which answers two questions.
void store(const std::filesystem::path& out, const std::string& label, std::uint64_t seed, std::size_t epochs) {
  StoredResult stored;
  stored.result.curve["training_loss"] = std::vector<double>(epochs, 1.0);
  stored.result.best_epoch = 1;
  stored.result.scores["right"] = {1, static_cast<double>(seed % 2)};
  stored.result.test["right"] = mean_score(stored.result.scores["right"]);
  const std::filesystem::path folder = out / label / ("seed-" + std::to_string(seed));
  std::filesystem::create_directories(folder);
  save_result(folder / result_name, label, seed, stored);
}

Result load(const Job& job) {
  return load_result(job.folder / result_name, job.label(), job.seed).result;
}

TEST(FinishedJobs, AreThoseOfTheRunFile) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path out = folder.path();
  store(out, "plain", 3, 2);
  store(out, "plain", 4, 1);  // goes on
  store(out, "bft/wide", 3, 2);
  store(out, "bft/wide", 5, 2);
  runfile::ExperimentRun run;
  run.request = {{"unit", "question"}, {"data", {{"name", "quiz"}, {"split", "sum"}}}};
  run.units = {"one", "two"};
  run.unit_scores = {{"right", true, "1"}};
  const FinishedRules rules{load, 2, 0};
  const testing::RecordingListener listener;
  add_finished(run, out, {{"plain", "", rules}, {"bft", "", rules}, {"bft", "wide", rules}, {"gate", "", rules}});
  EXPECT_THAT(run.arms, ElementsAre("plain", "bft/wide"));
  EXPECT_THAT(run.seeds, ElementsAre(3, 4, 5));
  ASSERT_EQ(run.results.size(), 6u);
  EXPECT_TRUE(run.result(0, 0) && !run.result(0, 1) && !run.result(0, 2));
  EXPECT_TRUE(run.result(1, 0) && !run.result(1, 1) && run.result(1, 2));
  EXPECT_THAT(listener.notices(), ElementsAre(HasSubstr("plain seed 4: has 1 of 2 epochs and is left out of run.h5")));

  runfile::publish_run_file(out, [&](const auto& file) { runfile::write_experiment_run(file, run); });
  const runfile::ExperimentRun found = runfile::read_experiment_run(out);
  EXPECT_THAT(found.result(1, 2)->scores.at("right"), ElementsAre(1, 1));
  EXPECT_EQ(found.result(0, 0)->test.at("right"), 1);
}

std::vector<std::string> names_of(const AskedJobs& asked, const std::filesystem::path& out) {
  std::vector<std::string> names;
  for (const Job& job : asked.jobs) names.push_back(std::filesystem::relative(job.folder, out));
  return names;
}

TEST(AskedJobs, AreThoseOfAllCalls) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path out = folder.path() / "run", other = folder.path() / "other";
  for (const auto& place : {out, other}) std::filesystem::create_directories(place);
  const std::vector<Job> first = jobs_of({.arms = {"plain", "bft"}, .variants = {}, .seed = 0, .seeds = 2}, out),
                         later = jobs_of({.arms = {"bft"}, .variants = {"", "wide"}, .seed = 1, .seeds = 2}, out);
  note_asked(out, first);
  note_asked(out, later);
  note_asked(out, first);
  note_asked(other, later);
  note_asked(other, first);
  EXPECT_EQ(testing::bytes_of(out / asked_name), testing::bytes_of(other / asked_name));
  const AskedJobs asked = asked_jobs(out);
  EXPECT_TRUE(asked.are_known);
  EXPECT_THAT(names_of(asked, out), ElementsAre("bft/seed-0", "bft/seed-1", "bft/seed-2", "bft/wide/seed-1",
                                                "bft/wide/seed-2", "plain/seed-0", "plain/seed-1"));
}

TEST(AskedJobs, OfEarlierVersionsAreThoseThatHaveBegun) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path out = folder.path();
  store(out, "plain", 3, 2);
  std::filesystem::create_directories(out / "bft/wide/seed-5/training");
  std::filesystem::create_directories(out / "report/figures");
  const AskedJobs asked = asked_jobs(out);
  EXPECT_FALSE(asked.are_known);
  EXPECT_THAT(names_of(asked, out), ElementsAre("bft/wide/seed-5", "plain/seed-3"));
  note_asked(out, jobs_of({.arms = {"plain"}, .variants = {}, .seed = 0, .seeds = 1}, out));
  EXPECT_THAT(names_of(asked_jobs(out), out), ElementsAre("bft/wide/seed-5", "plain/seed-0", "plain/seed-3"));
}

}  // namespace finished_jobs_test
}  // namespace gainlens::experiment
