#include "runfile/recommend_run.h"

#include "core/error.h"
#include "runfile/hdf5.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gainlens::runfile {
namespace {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

RecommendRun small_run() {
  RecommendRun run;
  run.request = {{"data", {{"split", "abc"}}}};
  run.arms = {"plain", "markov"};
  run.seeds = {4, 5, 7};
  run.users = {"ann", "bob"};
  run.target = {3, 1};
  run.history_length = {5, 2};
  run.training_length = {4, 1};
  run.item_train_count = {2, 0, 9};
  run.results.resize(6);
  run.results[0] = TrainedSeed{{{"ndcg@10", {0.1, 0.3}}, {"training_loss", {5, 4}}}, 2, {{"hr@10", 0.5}}, {1, 2.5F}};
  run.results[2] = TrainedSeed{{{"ndcg@10", {0.2}}, {"training_loss", {6}}}, 1, {{"hr@10", 1}}, {3, 1}};
  run.results[3] = TrainedSeed{{}, 0, {{"hr@10", 0.25}}, {2, 2}};
  return run;
}

TEST(RecommendRunFile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const RecommendRun run = small_run();
  write_recommend_run(folder.path() / "run.h5", run, "1.2.3");
  EXPECT_TRUE(is_recommend_run(folder.path()));
  const RecommendRun found = read_recommend_run(folder.path());
  EXPECT_EQ(found.request, run.request);
  EXPECT_EQ(found.arms, run.arms);
  EXPECT_EQ(found.seeds, run.seeds);
  EXPECT_EQ(found.users, run.users);
  EXPECT_EQ(found.target, run.target);
  EXPECT_EQ(found.history_length, run.history_length);
  EXPECT_EQ(found.training_length, run.training_length);
  EXPECT_EQ(found.item_train_count, run.item_train_count);
  ASSERT_EQ(found.results.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    ASSERT_EQ(found.results[i].has_value(), run.results[i].has_value()) << i;
    if (!run.results[i]) continue;
    EXPECT_EQ(found.results[i]->curve, run.results[i]->curve);
    EXPECT_EQ(found.results[i]->best_epoch, run.results[i]->best_epoch);
    EXPECT_EQ(found.results[i]->test, run.results[i]->test);
    EXPECT_EQ(found.results[i]->rank, run.results[i]->rank);
  }
  EXPECT_EQ(found.result(1, 0)->test.at("hr@10"), 0.25);
  write_recommend_run(folder.path() / "again.h5", run, "1.2.3");
  EXPECT_TRUE(bytes_of(folder.path() / "run.h5") == bytes_of(folder.path() / "again.h5"));
}

TEST(RecommendRunFile, WrongValuesAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::function<void(RecommendRun&)>& change) {
    RecommendRun run = small_run();
    change(run);
    write_recommend_run(folder.path() / "run.h5", run);
    return refusal_of([&] { read_recommend_run(folder.path() / "run.h5"); });
  };
  EXPECT_EQ(refusal([](RecommendRun&) {}), "accepted");
  EXPECT_THAT(refusal([](RecommendRun& run) { run.target[1] = 4; }), HasSubstr("'target' holds 4; must be 1 to 3"));
  EXPECT_THAT(refusal([](RecommendRun& run) { run.results[0]->rank[0] = 0.5F; }), HasSubstr("'rank' holds 0.5"));
  EXPECT_THAT(refusal([](RecommendRun& run) { run.results[0]->rank[0] = 4; }), HasSubstr("must be 1 to 3"));
  EXPECT_THAT(refusal([](RecommendRun& run) { run.item_train_count[0] = -1; }), HasSubstr("train_count' holds -1"));
  EXPECT_THAT(refusal([](RecommendRun& run) { run.results[0]->best_epoch = 3; }), HasSubstr("'best_epoch' holds 3"));
  EXPECT_THAT(refusal([](RecommendRun& run) { run.request = 3; }), HasSubstr("the request has no 'data'"));
  EXPECT_THAT(refusal([](RecommendRun& run) { run.results[0]->test.clear(); }), HasSubstr("of a finished seed"));
}

TEST(RecommendRunFile, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "run.h5";
  const auto refusal = [&] { return refusal_of([&] { read_recommend_run(path); }); };
  EXPECT_THAT(refusal(), HasSubstr("no such file"));
  EXPECT_FALSE(is_recommend_run(path));
  hdf5::write_file(path, [](const hdf5::Handle& file) {
    hdf5::write_attribute(file.get(), "format", "gainlens-sweep");
    hdf5::write_attribute(file.get(), "format_version", std::int64_t{1});
  });
  EXPECT_THAT(refusal(), HasSubstr("is not a recommender run but a sweep"));
  write_recommend_run(path, small_run());
  const std::string whole = bytes_of(path);
  for (const std::size_t size : {whole.size() / 4, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_THAT(refusal(), HasSubstr("cannot be read")) << size;
  }
}

}  // namespace
}  // namespace gainlens::runfile
