#include "runfile/run_kind.h"

#include "runfile/attention_run.h"
#include "runfile/experiment_run.h"
#include "runfile/made_attention_run.h"
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/made_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_folder.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <string>

namespace gainlens::runfile {
namespace run_kind_test {

namespace fs = std::filesystem;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunKinds : public ::testing::Test {
 protected:
  RunKinds() { fs::create_directories(run_); }

  void write_request(const std::string& text) const { write_file(run_ / "request.json", text); }

  /// What the folder, the folder with a slash, a link to it and, where there is one, its run.h5 and a link to that say.
  void expect_everywhere(RunKind kind) const {
    const fs::path link = folder_.path() / "link", link_of_file = folder_.path() / "other.h5";
    fs::remove(link);
    fs::remove(link_of_file);
    fs::create_directory_symlink(run_, link);
    std::vector<fs::path> paths = {run_, run_ / "", link, link / ""};
    if (fs::exists(run_ / "run.h5")) {
      fs::create_symlink(run_ / "run.h5", link_of_file);
      for (const fs::path& path : {run_ / "run.h5", link / "run.h5", link_of_file}) paths.push_back(path);
    }
    for (const fs::path& path : paths) {
      for (int call = 0; call < 2; ++call) {
        const auto found = identify(path);
        ASSERT_TRUE(found) << path;
        EXPECT_EQ(found->kind, kind) << path;
        EXPECT_EQ(found->folder, fs::canonical(run_)) << path;
        EXPECT_EQ(found->request.is_null(), !fs::exists(run_ / "request.json")) << path;
      }
    }
  }

  gainlens::testing::TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(RunKinds, EveryPathToARunSaysTheSame) {
  const fs::path file = run_ / "run.h5";
  write_attention_run(file, gainlens::testing::made_attention_run());
  expect_everywhere(RunKind::recommender_sweep);
  write_recommend_run(file, gainlens::testing::made_recommend_run());
  expect_everywhere(RunKind::recommenders);
  write_request(R"({"kind": "train recommend", "backbone": "sasrec"})");
  expect_everywhere(RunKind::recommenders);
  write_file(file, "damaged");
  expect_everywhere(RunKind::recommenders);
  write_experiment_run(file, gainlens::testing::made_experiment_run());
  write_request(R"({"kind": "of somebody else", "unit": "document"})");
  expect_everywhere(RunKind::experiment);
  write_request("{");
  EXPECT_EQ(identify(run_)->kind, RunKind::experiment);
}

TEST_F(RunKinds, ASweepIsKnownFromItsBeginning) {
  write_request(R"({"statistics_version": 1})");
  expect_everywhere(RunKind::sweep);
  fs::remove_all(run_);
  gainlens::testing::make_run(run_, gainlens::testing::made_request());
  expect_everywhere(RunKind::sweep);
}

TEST_F(RunKinds, ARequestAloneTellsEachKind) {
  const std::map<std::string, RunKind> requests = {{R"({"format": "gainlens-interventions"})", RunKind::interventions},
                                                   {R"({"format": "gainlens-patching"})", RunKind::patching},
                                                   {R"({"format": "gainlens-gate-arms"})", RunKind::gate_arms},
                                                   {R"({"backbone": "hstu"})", RunKind::recommenders},
                                                   {R"({"unit": "question"})", RunKind::experiment},
                                                   {R"({"statistics_version": 9})", RunKind::sweep}};
  for (const auto& [request, kind] : requests) {
    write_request(request);
    expect_everywhere(kind);
  }
}

TEST_F(RunKinds, ATrainingOfALanguageModelIsKnownByItsOwnRequest) {
  fs::create_directories(run_ / "training");
  const fs::path file = run_ / "training" / "request.json";
  for (const char* request : {R"({"kind": "train language-model"})", "{"}) {  // no other command makes this file
    write_file(file, request);
    expect_everywhere(RunKind::language_training);
  }
  write_file(file, R"({"kind": "another"})");
  EXPECT_FALSE(identify(run_));
}

TEST_F(RunKinds, WhereThereIsNoRunThereIsNone) {
  EXPECT_FALSE(identify(run_));
  EXPECT_FALSE(identify(run_ / "nothing"));
  write_file(run_ / "config.json", "{}");
  write_file(run_ / "data.csv", "user,item\n");
  EXPECT_FALSE(identify(run_));
  EXPECT_FALSE(identify(run_ / "data.csv"));
  fs::create_symlink(run_ / "loop", run_ / "loop");
  EXPECT_FALSE(identify(run_ / "loop"));
}

TEST_F(RunKinds, WhatTellsNoKindIsTakenForASweep) {
  for (const char* request : {"{", "[]", "{}", R"({"format": 1})"}) {
    write_request(request);
    EXPECT_EQ(identify(run_)->kind, RunKind::sweep) << request;
  }
  fs::remove(run_ / "request.json");
  write_file(run_ / "mine.h5", "damaged");
  EXPECT_EQ(identify(run_ / "mine.h5")->kind, RunKind::sweep);
  EXPECT_FALSE(identify(run_));
}

TEST_F(RunKinds, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((run_ / "run.h5").c_str(), 0600), 0);
  EXPECT_EQ(identify(run_)->kind, RunKind::sweep);
  EXPECT_EQ(identify(run_ / "run.h5")->kind, RunKind::sweep);
  ASSERT_EQ(::mkfifo((run_ / "request.json").c_str(), 0600), 0);
  EXPECT_EQ(identify(run_)->kind, RunKind::sweep);
}

TEST_F(RunKinds, TwoAtOnceAreRefused) {
  write_request(R"({"backbone": "sasrec", "unit": "document"})");
  const auto refusal = [&](const fs::path& path) { return refusal_of([&] { identify(path); }); };
  EXPECT_EQ(refusal(run_),
            run_.string() +
                ": is two kinds of run at once: by its request.json a recommender run, and by its request.json the run "
                "of an experiment; give each run a folder of its own");
  write_request(R"({"statistics_version": 1})");
  write_recommend_run(run_ / "run.h5", gainlens::testing::made_recommend_run());
  for (const fs::path& path : {run_, run_ / "run.h5"})
    EXPECT_THAT(refusal(path), HasSubstr("by its request.json a sweep, and by its run.h5 a recommender run"));
  EXPECT_EQ(mark_at(run_), nullptr);
}

TEST_F(RunKinds, AKindOfANewerVersionIsNamed) {
  for (const auto& [request, words] :
       {std::pair(R"({"format": "gainlens-new"})", "its request.json has the format 'gainlens-new', which"),
        std::pair(R"({"kind": "train \u001bnew"})", "its request.json has the kind 'train \\x1bnew', which")}) {
    write_request(request);
    EXPECT_THAT(
        refusal_of([&] { identify(run_); }),
        AllOf(HasSubstr(words), HasSubstr("does not know; use the gainlens that made it"), Not(HasSubstr("\n"))));
    EXPECT_FALSE(is_run_of(run_, RunKind::sweep));
  }
}

TEST_F(RunKinds, ANewerVersionOfARequestIsRefused) {
  std::size_t tried = 0;
  for (const RunMark& mark : run_marks()) {
    if (!mark.has_units) continue;
    ++tried;
    write_request(fmt::format(R"({{"format": "{}", "version": 1}})", mark.format));
    EXPECT_TRUE(identify(run_)) << mark.format;
    write_request(fmt::format(R"({{"format": "{}", "version": 9}})", mark.format));
    EXPECT_THAT(
        refusal_of([&] { identify(run_); }),
        HasSubstr("its request.json was made by a newer version of gainlens; /version is 9, and this one knows"))
        << mark.format;
  }
  EXPECT_EQ(tried, 3u);
}

TEST_F(RunKinds, AToyKindTakesALineInTheList) {
  const auto toy = static_cast<RunKind>(99);
  std::vector<RunMark> marks(run_marks().begin(), run_marks().end());
  write_request(R"({"format": "gainlens-toy"})");
  EXPECT_THAT(refusal_of([&] { identify(run_); }), HasSubstr("'gainlens-toy'"));
  marks.push_back({.kind = toy, .words = "a toy", .format = "gainlens-toy"});
  for (const fs::path& path : {run_, run_ / ""}) EXPECT_EQ(identify(path, marks)->kind, toy);
  write_request(R"({"format": "gainlens-toy", "unit": "document"})");
  EXPECT_THAT(refusal_of([&] { identify(run_, marks); }), HasSubstr("is two kinds of run at once"));
}

}  // namespace run_kind_test
}  // namespace gainlens::runfile
