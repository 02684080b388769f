#include "experiment/experiment.h"

#include "core/error.h"
#include "experiment/result_file.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "training/thread_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>

namespace gainlens::experiment {
namespace experiment_test {

using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// Trains nothing: the score of the only unit is the seed.
class Counter : public Subject {
 public:
  bool trains(const Job& job) const override { return job.arm != "baseline"; }
  double cost(const Job& job) const override { return trains(job) ? 3 : 0.1; }
  Json request_of(const Job& job, const Json& run) const override {
    Json own = run;
    own.erase("variants");
    own["job"] = job.label();
    own["seed"] = job.seed;
    return own;
  }
  StoredResult prove(const Job& job) const override {
    return load_result(job.folder / result_name, job.label(), job.seed);
  }
  bool is_finished(const Job& /*job*/, const Result& result) const override {
    return experiment::is_finished(result, epochs, 0);
  }
  StoredResult run(const Work& work) override {
    if (work.job.seed == failing) throw_run_failed("seed {} fails", work.job.seed);
    const std::lock_guard lock(mutex);
    done.push_back(work.job.label() + " " + std::to_string(work.job.seed));
    StoredResult stored;
    stored.result.scores["number"] = {static_cast<double>(work.job.seed)};
    if (trains(work.job)) stored.result.curve["training_loss"] = std::vector<double>(epochs, 1.0);
    return stored;
  }
  void combine() override { ++combined; }

  std::int64_t epochs = 3;
  std::uint64_t failing = std::numeric_limits<std::uint64_t>::max();
  std::mutex mutex;
  std::vector<std::string> done;
  int combined = 0;
};

Plan plan_in(const std::filesystem::path& out) {
  Plan plan{.title = "count",
            .axes = {.arms = {"a", "baseline"}, .variants = {}, .seed = 5, .seeds = 2},
            .out = out,
            .rules = {.may_grow = {"/training/epochs"}, .may_gain = {"/variants"}}};
  plan.threads = 2;
  plan.quiet = true;
  return plan;
}

const Json request = {{"kind", "train recommend"}, {"training", {{"epochs", 3}}}, {"threads", 1}};

std::vector<Outcome> run(const Plan& plan, Counter& subject, const Json& of_run = request) {
  training::SingleReplica alone;
  return Experiment(plan, subject, alone).run(of_run);
}

TEST(Jobs, HaveAFolderEach) {
  const auto jobs = jobs_of({.arms = {"a", "b"}, .variants = {"x", "y"}, .seed = 7, .seeds = 2}, "out");
  ASSERT_EQ(jobs.size(), 8u);
  EXPECT_EQ(jobs[1].folder, "out/a/x/seed-8");
  EXPECT_EQ(jobs[2].label(), "a/y");
  EXPECT_EQ(jobs[7].folder, "out/b/y/seed-8");
  EXPECT_EQ(jobs_of({.arms = {"a"}, .variants = {}, .seed = 0, .seeds = 1}, "out").front().folder, "out/a/seed-0");
  EXPECT_EQ(seed_of_folder("seed-18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* name : {"seed-", "seed-01", "seed--1", "seed-18446744073709551616", "sead-1"})
    EXPECT_FALSE(seed_of_folder(name)) << name;
}

TEST(Jobs, NamesOfVariantsAreThoseOfFolders) {
  for (const char* name : {"wide", "2x", "lr-1e-3", "a_b.c+d"}) EXPECT_TRUE(is_variant_name(name)) << name;
  for (const char* name : {"", ".", "..", "a/b", "-a", "seed-1", "seed-x", "training", "a b", "\u00e4", "a\x1b"})
    EXPECT_FALSE(is_variant_name(name)) << name;
}

TEST(Experiment, DoesEachJobOnce) {
  const TemporaryFolder folder;
  Counter subject;
  Plan plan = plan_in(folder.path() / "run");
  const auto outcomes = run(plan, subject);
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_EQ(outcomes[1].job.seed, 6u);
  EXPECT_THAT(outcomes[1].result.scores.at("number"), ElementsAre(6));
  EXPECT_THAT(subject.done, UnorderedElementsAre("a 5", "a 6", "baseline 5", "baseline 6"));
  subject.done.clear();
  plan.axes.seeds = 3;
  EXPECT_EQ(run(plan, subject)[0].seconds, 0);
  EXPECT_THAT(subject.done, UnorderedElementsAre("a 7", "baseline 7"));
  EXPECT_EQ(subject.combined, 2);

  subject.done.clear();
  subject.epochs = 4;  // more epochs continue every training
  Json grown = request;
  grown["training"]["epochs"] = 4;
  run(plan, subject, grown);
  EXPECT_THAT(subject.done, UnorderedElementsAre("a 5", "a 6", "a 7"));
  EXPECT_THAT(refusal_of([&] { run(plan, subject); }), HasSubstr("/training/epochs is 4 in the stored request"));
}

TEST(Experiment, TellsWhatAnEarlierCallHasDone) {
  const TemporaryFolder folder;
  const gainlens::testing::RecordingListener told;
  Counter subject;
  Plan plan = plan_in(folder.path() / "run");
  plan.axes = {.arms = {"a"}, .variants = {}, .seed = 5, .seeds = 1};
  plan.quiet = false;
  run(plan, subject);
  EXPECT_THAT(told.notices(), IsEmpty());
  plan.axes.seeds = 3;
  run(plan, subject);
  run(plan, subject);
  EXPECT_THAT(told.notices(), ElementsAre(plan.out.string() + ": 1 of 3 trainings was done by an earlier call",
                                          plan.out.string() + ": 3 of 3 trainings were done by an earlier call"));
  plan.quiet = true;
  run(plan, subject);
  EXPECT_THAT(told.notices(), SizeIs(2));
}

TEST(Experiment, GainsVariants) {
  const TemporaryFolder folder;
  Counter subject;
  Plan plan = plan_in(folder.path() / "run");
  plan.axes.seeds = 1;
  Json asked = request;
  for (const char* name : {"x", "y"}) {
    plan.axes.variants = {name};
    asked["variants"] = {{name, {{"width", 8}}}};
    run(plan, subject, asked);
  }
  EXPECT_THAT(subject.done, UnorderedElementsAre("a/x 5", "baseline/x 5", "a/y 5", "baseline/y 5"));
  EXPECT_EQ(read_json_file(plan.out / request_name)["variants"].size(), 2u);
  asked["variants"]["x"]["width"] = 16;
  EXPECT_THAT(refusal_of([&] { run(plan, subject, asked); }), HasSubstr("/variants/x/width is 8 in the stored"));
}

TEST(Experiment, AFailureLeavesTheOtherJobsToTheNextCall) {
  const TemporaryFolder folder;
  Counter subject;
  subject.failing = 6;
  const Plan plan = plan_in(folder.path() / "run");
  EXPECT_THROW(run(plan, subject), RunFailed);
  EXPECT_EQ(subject.combined, 0);
  subject.failing = 0;
  run(plan, subject);
  EXPECT_THAT(subject.done, UnorderedElementsAre("a 5", "a 6", "baseline 5", "baseline 6"));
}

TEST(Experiment, ProcessesShareSeeds) {
  const TemporaryFolder folder;
  Plan plan = plan_in(folder.path() / "run");
  plan.spread = Spread::seeds;
  plan.threads = 1;
  std::atomic<int> jobs = 0;
  gainlens::testing::with_replicas(3, [&](training::Replicas& replicas) {
    Counter subject;
    const auto outcomes = Experiment(plan, subject, replicas).run(request);
    jobs += static_cast<int>(subject.done.size());
    EXPECT_EQ(outcomes.size(), replicas.leads() ? 4u : 0u);
    EXPECT_EQ(subject.combined, replicas.leads() ? 1 : 0);
    if (replicas.leads()) {
      EXPECT_THAT(outcomes[3].result.scores.at("number"), ElementsAre(6));
    }
  });
  EXPECT_EQ(jobs, 4);
}

TEST(Experiment, MoreTrainingsSideBySideThanThreadsAreRefused) {
  const TemporaryFolder folder;
  Counter subject;
  Plan plan = plan_in(folder.path() / "run");
  plan.seeds_at_once = 3;
  EXPECT_THAT(refusal_of([&] { run(plan, subject); }), HasSubstr("--seeds-at-once: 3 trainings side by side"));
  EXPECT_FALSE(std::filesystem::exists(plan.out));
}

}  // namespace experiment_test
}  // namespace gainlens::experiment
