#include "experiment/proven_run.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/json.h"
#include "experiment/job.h"
#include "experiment/proven_result.h"
#include "experiment/result_file.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

namespace gainlens::experiment {
namespace {

namespace fs = std::filesystem;

/// The folder of a training; empty: the names in run.h5 are none of folders.
fs::path folder_of(const fs::path& run, const std::string& label, std::uint64_t seed) {
  const std::string arm = runfile::arm_of(label), variant = runfile::variant_of(label);
  if (!is_variant_name(arm) || !(variant.empty() || is_variant_name(variant))) return {};
  return jobs_of({.arms = {arm}, .variants = {variant}, .seed = seed, .seeds = 1}, run).front().folder;
}

/// @returns  whether there is a result to compare with
bool prove_training(const fs::path& run, const std::string& label, std::uint64_t seed,
                    const runfile::TrainedSeed& found, TrainingProof proof) {
  const fs::path folder = folder_of(run, label, seed), file = folder / result_name;
  if (folder.empty() || !fs::is_directory(folder)) return false;
  CHECK(
      fs::exists(file),
      "{}: is not there, and run.h5 holds this training: it was deleted, or the training goes on; repeat its gainlens "
      "train command, which continues",
      printable(file.string()));
  const Result stored =
      (proof == TrainingProof::files ? prove_result(folder, label, seed) : load_result(file, label, seed)).result;
  CHECK(stored.scores == found.scores && stored.test == found.test && stored.curve == found.curve &&
            stored.best_epoch == found.best_epoch,
        "{}: says something else than run.h5 of {}, seed {}; repeat the gainlens train command of the run, which "
        "writes run.h5 again",
        printable(file.string()), printable(label, 100), seed);
  return true;
}

}  // namespace

ProvenRun read_proven_run(const fs::path& path, TrainingProof proof) {
  ProvenRun proven{runfile::read_experiment_run(path), {}};
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
    CHECK(read_json_file(request) == run.request,
          "{}: is not the request in run.h5; put the right file back, or repeat its gainlens train command, which "
          "writes run.h5 again",
          printable(request.string()));
  }
  std::size_t finished = 0, compared = 0;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      if (!run.result(arm, seed)) continue;
      ++finished;
      if (prove_training(path, run.arms[arm], run.seeds[seed], *run.result(arm, seed), proof)) ++compared;
    }
  }
  if (compared < finished)
    proven.unproven.push_back(fmt::format("The folders of {} of {} are not there: their results were not compared.",
                                          finished - compared, counted(finished, "training")));
  return proven;
}

}  // namespace gainlens::experiment
