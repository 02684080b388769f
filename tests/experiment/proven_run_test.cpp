// What is proven of a run, and of one of its trainings.
#include "experiment/proven_run.h"

#include "experiment/job.h"
#include "experiment/result_file.h"
#include "runfile/checksums.h"
#include "runfile/made_experiment_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::experiment {
namespace proven_run_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;

class ProvenExperiment : public ::testing::Test {
 protected:
  ProvenExperiment() : run_(testing::made_experiment_run()) {
    testing::write_file(out() / "request.json", run_.request.dump());
    for (std::size_t i = 0; i < run_.results.size(); ++i) store(i);
    runfile::publish_run_file(out(), [&](const auto& file) { runfile::write_experiment_run(file, run_); });
  }
  fs::path out() const { return folder_.path(); }
  fs::path folder_of(std::size_t place) const {
    return out() / run_.arms[place / 3] / fmt::format("seed-{}", run_.seeds[place % 3]);
  }
  /// @param kept  checksums of the weights; else they are computed
  void store(std::size_t place, const std::optional<Json>& kept = {}) {
    const fs::path folder = folder_of(place);
    fs::create_directories(folder);
    testing::write_file(folder / "weights", "weights of " + std::to_string(place));
    const char* const names[] = {"weights"};
    StoredResult stored;
    stored.result = *run_.results[place];
    stored.kept = kept.value_or(runfile::checksums_of({folder, names}));
    save_result(folder / result_name, run_.arms[place / 3], run_.seeds[place % 3], stored);
  }
  void expect_refused(TrainingProof proof, const std::string& words) const {
    EXPECT_THAT([&] { read_proven_run(out(), proof); }, ThrowsMessage<InvalidArgument>(HasSubstr(words)));
  }
  void expect_faults(const std::vector<std::string>& words) const {
    const auto faults = read_proven_run(out(), TrainingProof::files).faults;
    ASSERT_EQ(faults.size(), words.size());
    for (std::size_t i = 0; i < words.size(); ++i) EXPECT_THAT(faults[i].message, HasSubstr(words[i]));
  }
  runfile::ExperimentRun run_;
  testing::TemporaryFolder folder_;
};

TEST_F(ProvenExperiment, AWholeRunIsProven) {
  for (const TrainingProof proof : {TrainingProof::numbers, TrainingProof::files})
    EXPECT_THAT(read_proven_run(out(), proof).unproven, IsEmpty());
  fs::remove_all(folder_of(4));
  EXPECT_THAT(read_proven_run(out()).unproven, ElementsAre(HasSubstr("The folders of 1 of 6 trainings")));
}

TEST_F(ProvenExperiment, CheckpointsAreReadOnlyWhereTheyAreAskedFor) {
  testing::write_file(folder_of(5) / "weights", "others");
  EXPECT_THAT(read_proven_run(out()).unproven, IsEmpty());
  expect_faults({"weights: its sha256 is "});
  fs::remove(folder_of(5) / "weights");
  expect_faults({"weights of this training is missing"});
}

TEST_F(ProvenExperiment, EveryChangedFileIsNamed) {
  testing::write_file(folder_of(1) / "weights", "others");
  testing::write_file(folder_of(2) / result_name, "broken");
  fs::remove(folder_of(4) / result_name);
  testing::write_file(out() / "request.json", "{}");
  expect_faults({"request.json: is not the request in run.h5", "seed-1/weights: its sha256 is ", "seed-2/result",
                 "bft/seed-1/result.safetensors: is not there"});
  const auto faults = read_proven_run(out(), TrainingProof::files).faults;
  const std::string words = runfile::faults_in_words(faults);
  EXPECT_TRUE(words.starts_with(faults.front().message + ". And 3 other files: "));
  EXPECT_TRUE(words.ends_with((folder_of(4) / result_name).string())) << words;
}

TEST_F(ProvenExperiment, AResultThatSaysSomethingElseIsRefused) {
  const runfile::TrainedSeed good = *run_.results[3];
  const auto expect_other = [&](const std::function<void(runfile::TrainedSeed&)>& change) {
    change(*run_.results[3]);
    store(3);
    expect_refused(TrainingProof::numbers, "says something else than run.h5 of bft, seed 0");
    run_.results[3] = good;
  };
  expect_other([](runfile::TrainedSeed& seed) { seed.scores.at("loss")[7] += 1; });
  expect_other([](runfile::TrainedSeed& seed) { seed.test.at("perplexity") += 1; });
  expect_other([](runfile::TrainedSeed& seed) { seed.curve.at("training_loss")[1] += 1; });
  expect_other([](runfile::TrainedSeed& seed) { seed.best_epoch = 1; });
  store(3);
  EXPECT_THAT(read_proven_run(out()).unproven, IsEmpty());
  fs::remove(folder_of(3) / result_name);
  expect_refused(TrainingProof::numbers, "is not there, and run.h5 holds this training");
}

TEST_F(ProvenExperiment, ChecksumsAreOfFilesOfTheFolder) {
  const auto expect_result_refused = [&](const Json& kept, const std::string& words) {
    store(0, kept);
    EXPECT_THAT([&] { prove_result(folder_of(0), "plain", 0); }, ThrowsMessage<InvalidArgument>(HasSubstr(words)));
  };
  for (const char* name : {"../weights", "/etc/hostname", "..", ".", "", "a/b"})
    expect_result_refused(Json{{name, "0"}}, "which is no file of its folder");
  expect_result_refused(Json{"weights"}, "its checksums are no list of files");
  store(0, Json());
  fs::remove(folder_of(0) / "weights");
  EXPECT_EQ(prove_result(folder_of(0), "plain", 0)->result.best_epoch, 2) << "an arm without a checkpoint keeps none";
}

}  // namespace proven_run_test
}  // namespace gainlens::experiment
