#include "runfile/experiment_run.h"

#include "core/error.h"
#include "runfile/hdf5.h"
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_kind.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"
#include "runfile/stored.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace gainlens::runfile {
namespace experiment_run_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::refusal_of;
using testing::TemporaryFolder;
using testing::uneven_experiment_run;

class ExperimentRunFile : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "run.h5"; }
  std::string refusal() const {
    return refusal_of([&] { read_experiment_run(file()); });
  }
  /// What the writer says of a run that was changed.
  std::string fault_of(const std::function<void(ExperimentRun&)>& change) const {
    ExperimentRun run = uneven_experiment_run();
    change(run);
    try {
      write_experiment_run(file(), run);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "written";
  }
  /// What the reader says of a file that was changed with the plain library.
  std::string refusal_after(const std::function<void(hid_t)>& change) const {
    write_experiment_run(file(), uneven_experiment_run());
    const hid_t id = gainlens::testing::open_to_change(file());
    EXPECT_GE(id, 0);
    change(id);
    EXPECT_GE(H5Fclose(id), 0);
    return refusal();
  }
  /// The same with one number of a dataset changed. @param place  among its numbers
  std::string refusal_with(const char* name, std::size_t place, double value) const {
    return refusal_after([&](hid_t file) {
      const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
      std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
      EXPECT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      values.at(place) = value;
      EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      H5Sclose(space);
      H5Dclose(dataset);
    });
  }
  /// The same with a dataset of texts replaced.
  std::string refusal_with_texts(const char* name, const std::vector<std::string>& texts) const {
    return refusal_after([&](hid_t file) {
      EXPECT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0);
      const hdf5::Handle made = hdf5::write_strings(file, name, texts, {std::ssize(texts)});
    });
  }

  TemporaryFolder folder_;
};

TEST_F(ExperimentRunFile, IsReadAsItWasWritten) {
  const ExperimentRun run = uneven_experiment_run();
  write_experiment_run(file(), run, "1.2.3");
  for (const fs::path& path : {folder_.path(), file()}) {
    const ExperimentRun found = read_experiment_run(path);
    EXPECT_EQ(found.request, run.request);
    EXPECT_EQ(found.arms, run.arms);
    EXPECT_EQ(found.seeds, run.seeds);
    EXPECT_EQ(found.units, run.units);
    EXPECT_EQ(found.unit_scores, run.unit_scores);
    EXPECT_EQ(found.unit(), "document");
    EXPECT_EQ(found.split(), "split-of-texts");
    ASSERT_EQ(found.results.size(), 9u);
    for (std::size_t i = 0; i < 9; ++i) {
      ASSERT_EQ(found.results[i].has_value(), i != 4) << i;
      if (i == 4) continue;
      EXPECT_EQ(found.results[i]->curve, run.results[i]->curve) << i;
      EXPECT_EQ(found.results[i]->best_epoch, run.results[i]->best_epoch) << i;
      EXPECT_EQ(found.results[i]->test, run.results[i]->test) << i;
      EXPECT_EQ(found.results[i]->scores, run.results[i]->scores) << i;
    }
  }
  EXPECT_TRUE(is_run_of(folder_.path(), RunKind::experiment));
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::recommenders));
}

TEST_F(ExperimentRunFile, TheSameRunHasTheSameBytes) {
  write_experiment_run(file(), uneven_experiment_run(), "1.2.3");
  write_experiment_run(folder_.path() / "again.h5", uneven_experiment_run(), "1.2.3");
  EXPECT_TRUE(testing::bytes_of(file()) == testing::bytes_of(folder_.path() / "again.h5"));
}

TEST_F(ExperimentRunFile, TheFilterIsReadAsItWasWritten) {
  ExperimentRun run = uneven_experiment_run();
  for (const FilterCurve& curve : filter_curves())
    run.results[3]->filter[std::string(curve.name)] = {1, 2, 3, 4, 5, 6};  // 3 epochs, 2 layers
  write_experiment_run(file(), run);
  const ExperimentRun found = read_experiment_run(file());
  EXPECT_EQ(found.results[3]->filter, run.results[3]->filter);
  EXPECT_TRUE(found.results[0]->filter.empty());
}

TEST_F(ExperimentRunFile, SomeResultsHaveLossesFromBeforeTheTraining) {
  ExperimentRun run = uneven_experiment_run();
  run.results[3]->test[start_loss] = 2.5;
  run.results[3]->test[start_loss_with_filter] = 3.5;
  write_experiment_run(file(), run);
  const ExperimentRun found = read_experiment_run(file());
  EXPECT_EQ(found.results[3]->test, run.results[3]->test);
  EXPECT_EQ(found.results[0]->test, run.results[0]->test);
  EXPECT_FALSE(found.results[0]->test.contains(start_loss));
}

TEST_F(ExperimentRunFile, ARunThatCannotBeIsNotWritten) {
  EXPECT_EQ(fault_of([](ExperimentRun&) {}), "written");
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.request["unit"] = "Document 1"; }), HasSubstr("'Document 1'"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.unit_scores[1].name = "a/b"; }), HasSubstr("usable names"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.unit_scores[1].name = "loss"; }), HasSubstr("usable names"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.results[0]->scores["loss"].pop_back(); }), HasSubstr("39 scores"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.results[0]->scores.erase("right"); }), HasSubstr("1 scores of 2"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.results[0]->test["loss"] += 1e-6; }), HasSubstr("not the mean"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.results[0]->test.erase("perplexity"); }),
              HasSubstr("2 metrics of 3"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.results.pop_back(); }), HasSubstr("8 results of 3 arms"));
  EXPECT_THAT(fault_of([](ExperimentRun& run) { run.results[0]->curve["loss"].pop_back(); }),
              HasSubstr("curves of 3 and 2 epochs"));
}

TEST_F(ExperimentRunFile, WrongNumbersAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal_with("score/loss", 41, nan),
              HasSubstr("'score/loss' holds nan for arm plain, seed 1; a score is"));
  EXPECT_THAT(refusal_with("score/loss", 0, infinite), HasSubstr("'score/loss' holds inf for arm plain, seed 0"));
  EXPECT_THAT(refusal_with("score/loss", 0, 4), AllOf(HasSubstr("'test/loss' holds"), HasSubstr("the scores give")));
  EXPECT_THAT(refusal_with("test/right", 1, 0.5), AllOf(HasSubstr("'test/right' holds 0.5"), HasSubstr("seed 1")));
  EXPECT_THAT(refusal_with("test/perplexity", 2, nan), HasSubstr("'test/perplexity' holds nan for arm plain, seed 2"));
  EXPECT_THAT(refusal_with("metric/loss", 1, nan), HasSubstr("'metric/loss' is not finite"));
  EXPECT_THAT(refusal_with("best_epoch", 0, 4), HasSubstr("'best_epoch' holds 4; must be -1 to 3"));
  EXPECT_THAT(refusal_with("seed", 0, -1), HasSubstr("'seed' holds -1"));
  EXPECT_EQ(refusal_with("score/loss", 4 * 40, nan), "accepted");  // of the seed that is not finished
}

TEST_F(ExperimentRunFile, WrongNamesAreRefused) {
  EXPECT_THAT(refusal_with_texts("score_name", {"loss", "loss"}), HasSubstr("two scores have one name"));
  EXPECT_THAT(refusal_with_texts("score_name", {"loss", "../right"}),
              HasSubstr("the score '../right' has no usable name"));
  EXPECT_THAT(refusal_with_texts("score_name", {"loss", "other"}), HasSubstr("the score 'other' and no metric"));
  EXPECT_THAT(refusal_with_texts("score_better", {"lower", "up"}), HasSubstr("holds 'up'; must be higher or lower"));
  EXPECT_THAT(refusal_with_texts("score_better", {"lower"}), HasSubstr("2 names of scores, 1 directions"));
  EXPECT_THAT(refusal_with_texts("score_measure", {"nats", "a\x1b["}), HasSubstr("is no unit of measurement"));
  EXPECT_THAT(refusal_with_texts("metric_name", {"loss", "right", "."}),
              HasSubstr("the metric '.' has no usable name"));
  EXPECT_THAT(refusal_with_texts("curve_name", {"a b"}), HasSubstr("the curve 'a b' has no usable name"));
  EXPECT_THAT(refusal_with_texts("arm", {"plain", "plain", "c"}), HasSubstr("two arms have one name"));
  EXPECT_THAT(refusal_with_texts("unit", std::vector<std::string>(40, "a")), HasSubstr("two documents have one name"));
  EXPECT_THAT(refusal_with_texts("unit", {"a", "b"}), HasSubstr("expected [3, 3, 2]"));
}

TEST_F(ExperimentRunFile, ARequestOfAnotherRunIsRefused) {
  const auto refused = [&](const std::string& request) {
    return refusal_after([&](hid_t file) {
      EXPECT_GE(H5Ldelete(file, "request", H5P_DEFAULT), 0);
      const hdf5::Handle made = hdf5::write_strings(file, "request", {request}, {});
    });
  };
  EXPECT_THAT(refused("3"), HasSubstr("/request has no object 'data'"));
  EXPECT_THAT(refused(R"({"data": {"name": "a"}, "unit": "document"})"), HasSubstr("text 'data.split'"));
  EXPECT_THAT(refused(R"({"data": {"name": "a", "split": "b"}})"), HasSubstr("word 'unit'"));
  EXPECT_THAT(refused(R"({"data": {"name": "a", "split": "b"}, "unit": "x\u001b"})"), HasSubstr("word 'unit'"));
}

TEST_F(ExperimentRunFile, WrongDatasetsAreRefused) {
  for (const char* name : {"request", "arm", "seed", "unit", "score_name", "score_better", "score_measure",
                           "metric_name", "best_epoch", "test/perplexity", "score/loss"}) {
    EXPECT_THAT(refusal_after([&](hid_t file) { EXPECT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0); }),
                AllOf(HasSubstr(std::string(name) + "' is missing"), HasSubstr("is damaged")));
  }
  EXPECT_THAT(
      refusal_after([](hid_t file) {
        EXPECT_GE(H5Ldelete(file, "score/loss", H5P_DEFAULT), 0);
        const hdf5::Handle made = hdf5::create_dataset(file, "score/loss", {H5T_IEEE_F32LE, {3, 3, 40}, {1, 1, 40}});
      }),
      HasSubstr("'score/loss' holds numbers of another type"));
}

TEST_F(ExperimentRunFile, CutFilesAreRefused) {
  write_experiment_run(file(), uneven_experiment_run());
  const std::string whole = testing::bytes_of(file());
  for (const std::size_t size : {std::size_t{0}, whole.size() / 4, whole.size() / 2, whole.size() - 1}) {
    testing::write_file(file(), whole.substr(0, size));
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is damaged"), Not(HasSubstr("\n")))) << size;
  }
}

TEST_F(ExperimentRunFile, EachReaderKnowsItsRuns) {
  write_experiment_run(file(), uneven_experiment_run());
  EXPECT_THAT(refusal_of([&] { RunReader::open(folder_.path()); }),
              HasSubstr("is the run of an experiment; gainlens compare, check, report and inspect read it"));
  EXPECT_THAT(
      refusal_of([&] { read_recommend_run(file()); }),
      HasSubstr("its format is 'gainlens-experiment'; a recommender run ('gainlens-recommend') is needed here"));
  write_recommend_run(file(), testing::made_recommend_run());
  EXPECT_THAT(refusal(), HasSubstr("its format is 'gainlens-recommend'; the run of an experiment"));
  EXPECT_FALSE(is_run_of(file(), RunKind::experiment));
}

TEST_F(ExperimentRunFile, ARunThatHasNotFinishedIsNamed) {
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::experiment));
  testing::write_file(folder_.path() / "request.json", R"({"unit": "document"})");
  EXPECT_TRUE(is_run_of(folder_.path(), RunKind::experiment));
  EXPECT_THAT(refusal_of([&] { read_experiment_run(folder_.path()); }), HasSubstr("the training has not finished"));
}

TEST_F(ExperimentRunFile, IsPublishedWithItsChecksum) {
  for (const char* version : {"1", "2"}) {
    publish_run_file(folder_.path(),
                     [&](const fs::path& path) { write_experiment_run(path, uneven_experiment_run(), version); });
    EXPECT_TRUE(prove_by_neighbour(file()));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);
}

TEST_F(ExperimentRunFile, AnUnknownScoreIsNamed) {
  EXPECT_FALSE(uneven_experiment_run().score("loss", "here").higher_is_better);
  EXPECT_THAT(refusal_of([] { uneven_experiment_run().score("los", "here"); }),
              HasSubstr("here: 'los' is no score of the run, which has loss, right; did you mean 'loss'?"));
}

}  // namespace experiment_run_test
}  // namespace gainlens::runfile
