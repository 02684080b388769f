#include "experiment/proven_run.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/json.h"
#include "experiment/job.h"
#include "experiment/result_file.h"
#include "runfile/checksums.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <optional>
#include <utility>
#include <vector>

namespace gainlens::experiment {
namespace {

namespace fs = std::filesystem;
using Faults = std::vector<runfile::FileFault>;

/// Whether it names a file of the folder itself, and of no other one.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('\0') == std::string::npos &&
         fs::path(name).filename() == name;
}

/// Proves the files whose checksums a result keeps.
/// @param without  the extension of files that are not looked at
/// @returns  whether its list of them is one
bool prove_kept_files(const fs::path& folder, const Json& checksums, Faults* faults, std::string_view without = {}) {
  const fs::path file = folder / result_name;
  const std::string repair =
      fmt::format("delete {} and repeat the command, which trains this seed again", printable(folder.string()));
  const bool is_list = runfile::look_at(faults, file, [&] {
    CHECK(checksums.is_null() || checksums.is_object(), "{}: its checksums are no list of files; {}",
          printable(file.string()), repair);
    for (const auto& [name, checksum] : checksums.items())
      CHECK(checksums.is_null() || is_file_name(name),
            "{}: keeps the checksum of '{}', which is no file of its folder; {}", printable(file.string()),
            printable(name, 60), repair);
  });
  if (!is_list || checksums.is_null()) return is_list;
  for (const auto& [name, checksum] : checksums.items()) {
    if (!without.empty() && fs::path(name).extension() == without) continue;
    const char* const names[] = {name.c_str()};
    runfile::look_at(faults, folder / name, [&] {
      runfile::prove_kept(checksums, {folder, names}, {"this training", result_name, repair});
    });
  }
  return true;
}

/// Compares a training with what run.h5 says of it.
/// @returns  whether there is a folder to compare with
bool compare(const fs::path& run, const std::string& label, std::uint64_t seed, const runfile::TrainedSeed& found,
             Faults* faults) {
  const fs::path folder = folder_of_training(run, label, seed), file = folder / result_name;
  if (folder.empty() || !fs::is_directory(folder)) return false;
  runfile::look_at(faults, file, [&] {
    CHECK(fs::exists(file),
          "{}: is not there, and run.h5 holds this training: it was deleted, or the training goes on; repeat its "
          "gainlens train command, which continues",
          printable(file.string()));
    const auto stored = faults != nullptr ? prove_result(folder, label, seed, faults) : load_result(file, label, seed);
    if (!stored) return;
    const Result& own = stored->result;
    CHECK(own.scores == found.scores && own.test == found.test && own.curve == found.curve &&
              own.best_epoch == found.best_epoch,
          "{}: says something else than run.h5 of {}, seed {}; repeat the gainlens train command of the run, which "
          "writes run.h5 again",
          printable(file.string()), printable(label, 100), seed);
  });
  return true;
}

}  // namespace

fs::path folder_of_training(const fs::path& run, const std::string& label, std::uint64_t seed) {
  const std::string arm = runfile::arm_of(label), variant = runfile::variant_of(label);
  if (!is_variant_name(arm) || !(variant.empty() || is_variant_name(variant))) return {};
  return jobs_of({.arms = {arm}, .variants = {variant}, .seed = seed, .seeds = 1}, run).front().folder;
}

ProvenRun read_proven_run(const fs::path& path, TrainingProof proof) {
  ProvenRun proven{runfile::read_experiment_run(path), {}};
  Faults* const faults = proof == TrainingProof::files ? &proven.faults : nullptr;
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
    runfile::look_at(faults, request, [&] {
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
      if (compare(path, run.arms[arm], run.seeds[seed], *run.result(arm, seed), faults)) ++compared;
    }
  }
  if (compared < finished)
    proven.unproven.push_back(fmt::format("The folders of {} of {} are not there: their results were not compared.",
                                          finished - compared, counted(finished, "training")));
  return proven;
}

std::optional<StoredResult> prove_result(const fs::path& folder, const std::string& label, std::uint64_t seed,
                                         Faults* faults) {
  std::optional<StoredResult> stored;
  runfile::look_at(faults, folder / result_name, [&] { stored = load_result(folder / result_name, label, seed); });
  if (stored && !prove_files(folder, *stored, faults)) stored.reset();
  return stored;
}

bool prove_files(const fs::path& folder, const StoredResult& stored, Faults* faults) {
  return prove_kept_files(folder, stored.kept, faults);
}

void prove_checkpoint_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  const fs::path result = folder / result_name;
  if (fs::exists(result)) {
    prove_kept_files(folder, load_result(result).kept, nullptr, ".jsonl");  // the answers are no part of the model
    return;
  }
  const auto found = runfile::compare_with_list(folder, "train again in another folder", runfile::Listed::here);
  if (!found.faults.empty()) throw_invalid("{}", found.faults.front().message);
}

}  // namespace gainlens::experiment
