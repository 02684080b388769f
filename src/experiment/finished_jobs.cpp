#include "experiment/finished_jobs.h"

#include "core/listener.h"
#include "experiment/result_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gainlens::experiment {
namespace {

/// The trainings of one arm, with one variant, in its folder.
struct FinishedArm {
  std::string label;
  std::map<std::uint64_t, Result> finished;
  std::map<std::uint64_t, std::int64_t> begun;  ///< the epochs of those that go on
};

FinishedArm finished_arm(const std::filesystem::path& out, const SoughtArm& sought) {
  FinishedArm arm{Job{sought.arm, sought.variant, 0, {}}.label(), {}, {}};
  for (const auto& entry : std::filesystem::directory_iterator(out / arm.label)) {
    const auto seed = seed_of_folder(entry.path().filename().string());
    if (!seed || !std::filesystem::exists(entry.path() / result_name)) continue;
    Result result = sought.rules.prove({sought.arm, sought.variant, *seed, entry.path()});
    if (is_finished(result, sought.rules.epochs, sought.rules.patience))
      arm.finished[*seed] = std::move(result);
    else
      arm.begun[*seed] = runfile::epochs_of(result);
  }
  for (const auto& [seed, epochs] : arm.begun)
    tell_note("{} seed {}: has {} of {} epochs and is left out of run.h5; ask for it, to continue", arm.label, seed,
              epochs, sought.rules.epochs);
  return arm;
}

}  // namespace

void add_finished(runfile::TrainedRun& run, const std::filesystem::path& out, const std::vector<SoughtArm>& sought) {
  std::vector<FinishedArm> arms;
  std::set<std::uint64_t> seeds;
  for (const SoughtArm& one : sought) {
    if (!std::filesystem::is_directory(out / Job{one.arm, one.variant, 0, {}}.label())) continue;
    FinishedArm found = finished_arm(out, one);
    const auto has_variants = [&](const SoughtArm& other) { return other.arm == one.arm && !other.variant.empty(); };
    // The folder of an arm may hold those of variants alone.
    if (found.finished.empty() && found.begun.empty() && one.variant.empty() &&
        std::ranges::any_of(sought, has_variants))
      continue;
    for (const auto& [seed, result] : found.finished) seeds.insert(seed);
    for (const auto& [seed, epochs] : found.begun) seeds.insert(seed);
    arms.push_back(std::move(found));
  }
  run.seeds.assign(seeds.begin(), seeds.end());
  for (FinishedArm& arm : arms) {
    run.arms.push_back(arm.label);
    for (const std::uint64_t seed : run.seeds) {
      auto& result = run.results.emplace_back();
      const auto done = arm.finished.find(seed);
      if (done != arm.finished.end()) result = std::move(done->second);
    }
  }
}

}  // namespace gainlens::experiment
