#include "runfile/recommend_run.h"

#include "core/error.h"
#include "runfile/hdf5.h"
#include "runfile/made_recommend_run.h"
#include "runfile/run_kind.h"
#include "runfile/run_reader.h"
#include "runfile/stored.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace gainlens::runfile {
namespace recommend_run_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::refusal_of;
using testing::TemporaryFolder;

class RecommendRunFile : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "run.h5"; }
  std::string refusal() const {
    return refusal_of([&] { read_recommend_run(file()); });
  }
  /// What the reader says of a file with a changed run.
  std::string refusal_with(const std::function<void(RecommendRun&)>& change) const {
    RecommendRun run = testing::uneven_recommend_run();
    change(run);
    write_recommend_run(file(), run);
    return refusal();
  }
  /// What the reader says of a file that was changed with the plain library.
  std::string refusal_after(const std::function<void(hid_t)>& change) const {
    write_recommend_run(file(), testing::uneven_recommend_run());
    const hid_t id = gainlens::testing::open_to_change(file());
    EXPECT_GE(id, 0);
    change(id);
    EXPECT_GE(H5Fclose(id), 0);
    return refusal();
  }
  static void remove(hid_t file, const char* name) { EXPECT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0); }

  TemporaryFolder folder_;
};

TEST_F(RecommendRunFile, IsReadAsItWasWritten) {
  const RecommendRun run = testing::uneven_recommend_run();
  write_recommend_run(file(), run, "1.2.3");
  for (const fs::path& path : {folder_.path(), file()}) {
    const RecommendRun found = read_recommend_run(path);
    EXPECT_EQ(found.request, run.request);
    EXPECT_EQ(found.arms, run.arms);
    EXPECT_EQ(found.seeds, run.seeds);
    EXPECT_EQ(found.units, run.units);
    EXPECT_EQ(found.target, run.target);
    EXPECT_EQ(found.history_length, run.history_length);
    EXPECT_EQ(found.training_length, run.training_length);
    EXPECT_EQ(found.item_train_count, run.item_train_count);
    ASSERT_EQ(found.results.size(), 9u);
    for (std::size_t i = 0; i < 9; ++i) {
      ASSERT_EQ(found.results[i].has_value(), i != 4) << i;
      if (i == 4) continue;
      EXPECT_EQ(found.results[i]->curve, run.results[i]->curve) << i;
      EXPECT_EQ(found.results[i]->best_epoch, run.results[i]->best_epoch) << i;
      EXPECT_EQ(found.results[i]->test, run.results[i]->test) << i;
      EXPECT_EQ(found.results[i]->scores.at("rank"), run.results[i]->scores.at("rank")) << i;
    }
    EXPECT_FALSE(found.result(1, 1));
    EXPECT_EQ(found.result(2, 0)->best_epoch, 0);
    EXPECT_EQ(found.data_name(), "made");
    EXPECT_EQ(found.backbone(), "sasrec");
    EXPECT_EQ(found.split(), "split-made0");
  }
}

/// Gives arm 1 what a filter of two layers did: each curve, epoch and layer has a number of its own, but for the first
/// epoch.
void add_filter(RecommendRun& run) {
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    auto& result = run.results[run.seeds.size() + seed];
    if (!result) continue;
    double number = static_cast<double>(seed) + 0.5;
    for (const FilterCurve& curve : filter_curves()) {
      std::vector<double>& values = result->filter[std::string(curve.name)];
      for (std::size_t i = 0; i < 2 * result->curve.begin()->second.size(); ++i)
        values.push_back(i < 2 ? std::nan("") : number++);
    }
  }
}

TEST_F(RecommendRunFile, TheFilterIsReadAsItWasWritten) {
  RecommendRun run = testing::uneven_recommend_run();
  add_filter(run);
  write_recommend_run(file(), run);
  const RecommendRun found = read_recommend_run(file());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i]) continue;
    ASSERT_EQ(found.results[i]->filter.size(), run.results[i]->filter.size()) << i;
    for (const auto& [name, values] : run.results[i]->filter) {
      const std::vector<double>& read = found.results[i]->filter.at(name);
      ASSERT_EQ(read.size(), values.size());
      for (std::size_t j = 0; j < values.size(); ++j, ++compared)
        EXPECT_TRUE(read[j] == values[j] || (std::isnan(read[j]) && std::isnan(values[j]))) << name << " " << j;
    }
  }
  EXPECT_GT(compared, 100u);
  EXPECT_TRUE(found.results[0]->filter.empty());
  const hid_t id = gainlens::testing::open_to_change(file());
  remove(id, "filter/gain");
  EXPECT_GE(H5Fclose(id), 0);
  EXPECT_THAT(refusal(), HasSubstr("filter/gain"));
}

// Trainings of earlier versions have no metrics of lists.
TEST_F(RecommendRunFile, MetricsOfListsMayBeMissing) {
  RecommendRun run = testing::uneven_recommend_run();
  run.results[0]->test["novelty@10"] = 9.5;
  write_recommend_run(file(), run);
  const RecommendRun found = read_recommend_run(file());
  EXPECT_EQ(found.results[0]->test, run.results[0]->test);
  EXPECT_EQ(found.results[1]->test, run.results[1]->test);
  EXPECT_FALSE(found.results[1]->test.contains("novelty@10"));
  EXPECT_THAT(refusal_with([](RecommendRun& changed) { changed.results[0]->test["novelty@10"] = -1; }),
              HasSubstr("dataset 'test/novelty@10' holds -1"));
}

// With a temporal split, users without a test have training items too.
TEST_F(RecommendRunFile, TrainingItemsOfUsersWithoutATestAreCounted) {
  EXPECT_EQ(refusal_with([](RecommendRun& run) {
              run.item_train_count[0] += 3;
              run.request["data"]["untested_items"] = 3;
            }),
            "accepted");
  EXPECT_THAT(refusal_with([](RecommendRun& run) { run.request["data"]["untested_items"] = 3; }),
              HasSubstr("items are in training"));
  EXPECT_THAT(refusal_with([](RecommendRun& run) { run.request["data"]["untested_items"] = "3"; }),
              HasSubstr("'untested_items' of the request is"));
}

TEST_F(RecommendRunFile, TheSameRunHasTheSameBytesAndLeavesNoOtherFile) {
  write_recommend_run(file(), testing::uneven_recommend_run(), "1.2.3");
  write_recommend_run(folder_.path() / "again.h5", testing::uneven_recommend_run(), "1.2.3");
  EXPECT_TRUE(bytes_of(file()) == bytes_of(folder_.path() / "again.h5"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);
}

TEST_F(RecommendRunFile, ArmsWithoutTrainingNeedNoCurve) {
  testing::MadeRecommender made;
  made.arms = {"popularity"};
  RecommendRun run = testing::made_recommend_run(made);
  for (auto& result : run.results) result->curve.clear(), result->best_epoch = 0;
  write_recommend_run(file(), run);
  EXPECT_TRUE(read_recommend_run(file()).result(0, 1)->curve.empty());
}

TEST_F(RecommendRunFile, UnknownDatasetsAreNotRead) {
  EXPECT_EQ(refusal_after([](hid_t file) {
              const hdf5::Handle item = hdf5::create_dataset(file, "item/kalman_gain", {H5T_IEEE_F64LE, {2, 2}, {}});
              const hdf5::Handle test = hdf5::create_dataset(file, "test/recall@7", {H5T_STD_I8LE, {5}, {}});
              hdf5::create_group(file, "later");
            }),
            "accepted");
}

TEST_F(RecommendRunFile, WrongValuesAreRefused) {
  const auto refused = [&](const std::function<void(RecommendRun&)>& change) { return refusal_with(change); };
  EXPECT_EQ(refused([](RecommendRun&) {}), "accepted");
  EXPECT_THAT(refused([](RecommendRun& run) { run.target[1] = 26; }), HasSubstr("'target' holds 26; must be 1 to 25"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.target[1] = 0; }), HasSubstr("'target' holds 0"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.item_train_count[0] = -1; }), HasSubstr("train_count' holds -1"));
  EXPECT_THAT(refused([](RecommendRun& run) { ++run.item_train_count[0]; }), HasSubstr("items are in training"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.training_length[0] = 0; }), HasSubstr("training_length' holds 0"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.history_length[3] = 1, run.training_length[3] = 2; }),
              HasSubstr("user 3 has 2 training items of 1 known items"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.seeds[1] = run.seeds[0]; }), HasSubstr("a seed stands twice"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.arms[1] = "plain"; }), HasSubstr("two arms have one name"));
  EXPECT_THAT(refused([](RecommendRun& run) { run.arms[1] = "a\nb"; }), HasSubstr("the arm 'a\\x0ab'"));
}

/// The numbers of the dataset of seeds, as int64.
std::vector<std::int64_t> stored_seeds(const std::filesystem::path& file, hid_t type) {
  const hdf5::Handle opened = hdf5::open_file(file);
  std::vector<std::int64_t> seeds(static_cast<std::size_t>(hdf5::shape_at(opened.get(), "seed").at(0)));
  hdf5::read(hdf5::open_dataset(opened.get(), "seed", {type, {std::ssize(seeds)}, {}}), H5T_NATIVE_INT64, seeds.data());
  return seeds;
}

TEST_F(RecommendRunFile, SeedsBeyondInt64AreUnsigned) {
  RecommendRun run = testing::uneven_recommend_run();
  run.seeds = {0, 7, std::uint64_t{std::numeric_limits<std::int64_t>::max()}};
  write_recommend_run(file(), run);
  EXPECT_EQ(read_recommend_run(file()).seeds, run.seeds);
  EXPECT_EQ(stored_seeds(file(), H5T_STD_I64LE)[1], 7);
  run.seeds = {0, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()};
  write_recommend_run(file(), run);
  EXPECT_EQ(read_recommend_run(file()).seeds, run.seeds);
  EXPECT_EQ(stored_seeds(file(), H5T_STD_U64LE)[0], 0);
}

TEST_F(RecommendRunFile, ANegativeSeedIsRefused) {
  write_recommend_run(file(), testing::uneven_recommend_run());
  const std::vector<std::int64_t> seeds = {0, -4, 2};
  const hid_t opened = gainlens::testing::open_to_change(file());
  const hid_t dataset = H5Dopen2(opened, "seed", H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, seeds.data()), 0);
  H5Dclose(dataset);
  H5Fclose(opened);
  EXPECT_THAT(refusal_of([&] { read_recommend_run(file()); }), HasSubstr("'seed' holds -4"));
}

TEST_F(RecommendRunFile, WrongResultsAreRefused) {
  const auto refused = [&](const std::function<void(TrainedSeed&)>& change) {
    return refusal_with([&](RecommendRun& run) { change(*run.results[1]); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refused([](TrainedSeed& seed) { seed.scores.at("rank")[7] = 0.5F; }),
              HasSubstr("'rank' holds 0.5 for arm plain, seed 1; must be 1 to 25 in steps of a half"));
  EXPECT_THAT(refused([](TrainedSeed& seed) { seed.scores.at("rank")[7] = 25.5F; }), HasSubstr("'rank' holds 25.5"));
  EXPECT_THAT(refused([](TrainedSeed& seed) { seed.scores.at("rank")[7] = 2.25F; }), HasSubstr("'rank' holds 2.25"));
  EXPECT_THAT(refused([&](TrainedSeed& seed) { seed.scores.at("rank")[7] = static_cast<float>(nan); }),
              HasSubstr("holds nan"));
  EXPECT_THAT(refused([](TrainedSeed& seed) { seed.test["hr@5"] += 1e-6; }),
              AllOf(HasSubstr("'test/hr@5' holds"), HasSubstr("and the ranks give")));
  EXPECT_THAT(refused([&](TrainedSeed& seed) { seed.test["mrr"] = nan; }), HasSubstr("'test/mrr' holds nan"));
  EXPECT_THAT(refused([&](TrainedSeed& seed) { seed.curve["ndcg@10"][1] = nan; }), HasSubstr("'metric/ndcg@10'"));
  EXPECT_THAT(refused([&](TrainedSeed& seed) { seed.curve["ndcg@10"][1] = infinite; }), HasSubstr("'metric/ndcg@10'"));
  EXPECT_THAT(refused([](TrainedSeed& seed) { seed.best_epoch = 40; }), HasSubstr("'best_epoch' holds 40"));
  EXPECT_THAT(refused([](TrainedSeed& seed) { seed.curve.clear(); }), HasSubstr("has no learning curve"));
  EXPECT_THAT(refused([](TrainedSeed& seed) {
                for (auto& [name, values] : seed.curve) values.resize(static_cast<std::size_t>(seed.best_epoch) - 1);
              }),
              HasSubstr("is the best"));
}

TEST_F(RecommendRunFile, ARequestOfAnotherRunIsRefused) {
  const auto refused = [&](const std::function<void(Json&)>& change) {
    return refusal_with([&](RecommendRun& run) { change(run.request); });
  };
  EXPECT_THAT(refused([](Json& request) { request = 3; }), HasSubstr("/request has no object 'data'"));
  EXPECT_THAT(refused([](Json& request) { request.erase("backbone"); }), HasSubstr("text 'backbone'"));
  EXPECT_THAT(refused([](Json& request) { request["data"]["split"] = 7; }), HasSubstr("text 'data.split'"));
  EXPECT_THAT(refused([](Json& request) { request["data"].erase("interactions"); }), HasSubstr("'data.interactions'"));
  EXPECT_THAT(refused([](Json& request) { request["data"]["users"] = 61; }),
              HasSubstr("holds 60 users and 25 items, and /request says 61 and 25"));
}

TEST_F(RecommendRunFile, WrongDatasetsAreRefused) {
  for (const char* name : {"request", "arm", "seed", "user", "target", "history_length", "training_length", "rank",
                           "best_epoch", "test/ndcg@20", "item/train_count"}) {
    EXPECT_THAT(refusal_after([&](hid_t file) { remove(file, name); }),
                AllOf(HasSubstr(std::string(name) + "' is missing"), HasSubstr("is damaged")));
  }
  const auto replaced = [&](const char* name, const hdf5::Layout& layout) {
    return refusal_after([&](hid_t file) {
      remove(file, name);
      const hdf5::Handle made = hdf5::create_dataset(file, name, layout);
    });
  };
  EXPECT_THAT(replaced("target", {H5T_STD_I64LE, {59}, {}}), HasSubstr("'target' has shape [59]; expected [60]"));
  EXPECT_THAT(replaced("target", {H5T_STD_I32LE, {60}, {}}), HasSubstr("'target' holds numbers of another type"));
  EXPECT_THAT(replaced("seed", {H5T_STD_I64LE, {3, 1}, {}}), HasSubstr("'seed' has 2 axes"));
  EXPECT_THAT(replaced("rank", {H5T_IEEE_F32LE, {3, 3, 60}, {}}), HasSubstr("'rank' is not chunked"));
  EXPECT_THAT(replaced("test/mrr", {H5T_IEEE_F32LE, {3, 3}, {}}),
              HasSubstr("'test/mrr' holds numbers of another type"));
  EXPECT_THAT(replaced("user", {H5T_STD_I64LE, {60}, {}}), HasSubstr("'user' does not hold text"));
}

TEST_F(RecommendRunFile, OtherFilesAreRefused) {
  EXPECT_THAT(refusal(), HasSubstr("no such file or folder"));
  EXPECT_THAT(refusal_of([&] { read_recommend_run(folder_.path()); }), HasSubstr("has no run.h5; give the folder"));
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::recommenders));
  hdf5::write_file(file(), [](const hdf5::Handle& made) {
    hdf5::write_attribute(made.get(), "format", "gainlens-sweep");
    hdf5::write_attribute(made.get(), "format_version", std::int64_t{1});
  });
  EXPECT_FALSE(is_run_of(file(), RunKind::recommenders));
  EXPECT_THAT(refusal(), HasSubstr("is a run of gainlens sweep, and a recommender run is needed here"));
  EXPECT_THAT(refusal_after([](hid_t file) {
                EXPECT_GE(H5Adelete(file, "format_version"), 0);
                hdf5::write_attribute(file, "format_version", std::int64_t{2});
              }),
              HasSubstr("its format version is 2; this gainlens reads version 1"));
}

TEST_F(RecommendRunFile, CutFilesAreRefused) {
  write_recommend_run(file(), testing::uneven_recommend_run());
  const std::string whole = bytes_of(file());
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{100}, whole.size() / 4, whole.size() / 2, whole.size() - 1}) {
    testing::write_file(file(), whole.substr(0, size));
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is damaged"), Not(HasSubstr("\n")))) << size;
  }
}

TEST_F(RecommendRunFile, OtherReadersSayWhichCommandReadsIt) {
  write_recommend_run(file(), testing::uneven_recommend_run());
  EXPECT_TRUE(is_run_of(folder_.path(), RunKind::recommenders));
  EXPECT_THAT(refusal_of([&] { RunReader::open(folder_.path()); }),
              HasSubstr("is a recommender run; gainlens report and compare read it"));
}

TEST_F(RecommendRunFile, ARunThatHasNotFinishedIsNamed) {
  testing::write_file(folder_.path() / "request.json", R"({"backbone": "sasrec"})");
  EXPECT_TRUE(is_run_of(folder_.path(), RunKind::recommenders));
  EXPECT_THAT(refusal_of([&] { read_recommend_run(folder_.path()); }), HasSubstr("the training has not finished"));
}

}  // namespace recommend_run_test
}  // namespace gainlens::runfile
