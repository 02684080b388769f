#include "experiment/proven_run.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/json.h"
#include "experiment/job.h"
#include "experiment/proven_result.h"
#include "experiment/result_file.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <optional>

namespace gainlens::experiment {
namespace {

namespace fs = std::filesystem;

/// Compares a training with the run.
class TrainingsProof {
 public:
  TrainingsProof(const fs::path& run, TrainingProof proof, std::vector<runfile::FileFault>& faults)
      : run_(run), proof_(proof), faults_(faults) {}

  /// @returns  whether there is a result to compare with
  bool compare(const std::string& label, std::uint64_t seed, const runfile::TrainedSeed& found) const {
    const fs::path folder = folder_of_training(run_, label, seed), file = folder / result_name;
    if (folder.empty() || !fs::is_directory(folder)) return false;
    look_at(file, [&] {
      CHECK(fs::exists(file),
            "{}: is not there, and run.h5 holds this training: it was deleted, or the training goes on; repeat its "
            "gainlens train command, which continues",
            printable(file.string()));
      const auto stored = read(folder, label, seed);
      if (stored) compare_numbers(stored->result, found, file, label, seed);
    });
    return true;
  }
  /// Calls a function that throws what speaks against the file.
  template <typename Look>
  void look_at(const fs::path& file, const Look& look) const {
    if (proof_ == TrainingProof::numbers) return look();
    try {
      look();
    } catch (const InvalidArgument& error) {
      faults_.push_back({file, error.what()});
    }
  }

 private:
  std::optional<StoredResult> read(const fs::path& folder, const std::string& label, std::uint64_t seed) const {
    return proof_ == TrainingProof::files ? examine_result(folder, label, seed, faults_)
                                          : load_result(folder / result_name, label, seed);
  }
  static void compare_numbers(const Result& stored, const runfile::TrainedSeed& found, const fs::path& file,
                              const std::string& label, std::uint64_t seed) {
    CHECK(stored.scores == found.scores && stored.test == found.test && stored.curve == found.curve &&
              stored.best_epoch == found.best_epoch,
          "{}: says something else than run.h5 of {}, seed {}; repeat the gainlens train command of the run, which "
          "writes run.h5 again",
          printable(file.string()), printable(label, 100), seed);
  }

  const fs::path& run_;
  TrainingProof proof_;
  std::vector<runfile::FileFault>& faults_;
};

}  // namespace

fs::path folder_of_training(const fs::path& run, const std::string& label, std::uint64_t seed) {
  const std::string arm = runfile::arm_of(label), variant = runfile::variant_of(label);
  if (!is_variant_name(arm) || !(variant.empty() || is_variant_name(variant))) return {};
  return jobs_of({.arms = {arm}, .variants = {variant}, .seed = seed, .seeds = 1}, run).front().folder;
}

ProvenRun read_proven_run(const fs::path& path, TrainingProof proof) {
  ProvenRun proven{runfile::read_experiment_run(path), {}};
  const TrainingsProof trainings(path, proof, proven.faults);
  const bool is_folder = fs::is_directory(path);
  const fs::path file = is_folder ? path / runfile::run_file_name : path;
  if (!fs::exists(runfile::checksum_file_of(file))) proven.unproven.emplace_back(runfile::no_checksum);
  if (!is_folder) {
    proven.unproven.push_back("run.h5 was given without its folder: the files of its trainings were not compared.");
    return proven;
  }
  const runfile::ExperimentRun& run = proven.run;
  const fs::path request = path / runfile::request_file_name;
  if (!fs::exists(request)) {
    proven.unproven.push_back("There is no request.json: the settings in run.h5 were not compared.");
  } else {
    trainings.look_at(request, [&] {
      CHECK(read_json_file(request) == run.request,
            "{}: is not the request in run.h5; put the right file back, it is the text /request of run.h5",
            printable(request.string()));
    });
  }
  std::size_t finished = 0, compared = 0;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      if (!run.result(arm, seed)) continue;
      ++finished;
      if (trainings.compare(run.arms[arm], run.seeds[seed], *run.result(arm, seed))) ++compared;
    }
  }
  if (compared < finished)
    proven.unproven.push_back(fmt::format("The folders of {} of {} are not there: their results were not compared.",
                                          finished - compared, counted(finished, "training")));
  return proven;
}

}  // namespace gainlens::experiment
