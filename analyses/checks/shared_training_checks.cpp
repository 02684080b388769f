#include "analyses/checks/shared_training_checks.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/number_ranges.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace gainlens::analyses::training_checks {

using runfile::TrainedSeed;

namespace {

/// The values of a curve of the filter at the tested epoch, [layer]; empty: no filter.
std::vector<double> tested(const TrainedSeed& seed, const std::string& name) {
  const auto curve = seed.filter.find(name);
  const auto epochs = seed.curve.empty() ? std::size_t{0} : seed.curve.begin()->second.size();
  if (curve == seed.filter.end() || epochs == 0 || seed.best_epoch < 1) return {};
  const std::size_t layers = curve->second.size() / epochs;
  const auto begin = curve->second.begin() + static_cast<std::ptrdiff_t>(layers) * (seed.best_epoch - 1);
  return {begin, begin + static_cast<std::ptrdiff_t>(layers)};
}

bool any_finite(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return std::isfinite(value); });
}

}  // namespace

Faulty::Faulty(const CheckedTrainings& checked, const Fault& has_fault) {
  const runfile::TrainedRun& run = checked.trainings;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::vector<std::uint64_t> seeds;
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      const auto& result = run.result(arm, seed);
      if (has_fault(result ? &*result : nullptr)) seeds.push_back(run.seeds[seed]);
    }
    if (seeds.empty()) continue;
    count_ += seeds.size();
    parts_.push_back(
        fmt::format("{} seed{} {}", printable(run.arms[arm], 60), seeds.size() == 1 ? "" : "s", number_ranges(seeds)));
  }
}

std::string Faulty::words() const {
  return fmt::format("{}", fmt::join(parts_, "; "));
}

FaultInWords faulty(const CheckedTrainings& checked, const std::function<std::string(const TrainedSeed&)>& fault_of) {
  std::string first;
  const Faulty found(checked, [&](const TrainedSeed* seed) {
    const std::string fault = seed == nullptr ? std::string() : fault_of(*seed);
    if (first.empty()) first = fault;
    return !fault.empty();
  });
  return {found.words(), first};
}

CheckOutcome files(const CheckedTrainings& checked) {
  if (!checked.changed.empty()) return {checked.changed, "take no number from these files until they are mended"};
  if (!checked.unproven.empty())
    return not_known(fmt::format("whether {} have changed", checked.not_compared), checked.unproven);
  return satisfactory("the files of every training are as it wrote them");
}

CheckOutcome finished(const CheckedTrainings& checked) {
  const Faulty open(checked, [](const TrainedSeed* seed) { return seed == nullptr; });
  const std::size_t all = checked.trainings.results.size();
  if (open.none()) return satisfactory(all_are(static_cast<std::int64_t>(all), "training") + " finished");
  return {fmt::format("{} of {} not finished: {}", open.count(), counted_are(all, "training"), open.words()),
          fmt::format("repeat the {} command, which continues", checked.command)};
}

CheckOutcome diverged(const CheckedTrainings& checked,
                      const std::function<std::string(const TrainedSeed&)>& divergence_of) {
  const FaultInWords found = faulty(checked, divergence_of);
  if (found.words.empty()) return satisfactory("no training has diverged");
  return {fmt::format("diverged: {}; of the first, {}", found.words, found.first),
          "train with a smaller --learning-rate in another folder"};
}

CheckOutcome seeds(const CheckedTrainings& checked) {
  if (checked.alone) return not_known("how many seeds there are; this is one training alone, so give the run");
  std::vector<std::string> few;
  const runfile::TrainedRun& run = checked.trainings;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::size_t done = 0;
    bool baseline = false;
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      const auto& result = run.result(arm, seed);
      done += result ? 1 : 0;
      baseline = baseline || (result && result->best_epoch == 0);
    }
    if (!baseline && done < min_seeds) few.push_back(fmt::format("{} has {}", printable(run.arms[arm], 60), done));
  }
  if (few.empty()) return satisfactory(fmt::format("at least {} of each trained arm", counted(min_seeds, "seed")));
  return {fmt::format("too few finished seeds for a p: {}; it takes {}", fmt::join(few, ", "), min_seeds),
          "train more --seeds into the same folder"};
}

CheckOutcome filter(const CheckedTrainings& checked, std::string advice) {
  const auto has_filter = [](const TrainedSeed* seed) { return seed != nullptr && !seed->filter.empty(); };
  if (Faulty(checked, has_filter).none()) return satisfactory("no arm has a filter");
  const Faulty never(checked, [&](const TrainedSeed* seed) {
    return has_filter(seed) && !any_finite(tested(*seed, "precision")) && !any_finite(tested(*seed, "gain"));
  });
  if (never.none()) return satisfactory("the filter was in force in the tested epochs");
  return {fmt::format("the filter was not in force in the tested epoch (it warms up): {}", never.words()),
          std::move(advice)};
}

CheckOutcome bounds(const CheckedTrainings& checked, std::string advice) {
  const std::pair<const char*, const char*> curves[] = {{"share_at_most", "lambda_obs"},
                                                        {"share_of_precision_at_most", "lambda"}};
  std::vector<std::string> found;
  for (const auto& [name, symbol] : curves) {
    std::set<std::int64_t> layers;  // of any training
    const Faulty full(checked, [&layers, &curve = name](const TrainedSeed* seed) {
      if (seed == nullptr) return false;
      bool is_full = false;
      const std::vector<double> shares = tested(*seed, curve);
      for (std::size_t layer = 0; layer < shares.size(); ++layer) {
        if (!(shares[layer] >= nearly_all)) continue;  // also while the filter warms up: then it is NaN
        layers.insert(static_cast<std::int64_t>(layer));
        is_full = true;
      }
      return is_full;
    });
    if (!full.none())
      found.push_back(fmt::format("{} of {} {} in {}", symbol, layers.size() == 1 ? "layer" : "layers",
                                  number_ranges(std::vector<std::int64_t>(layers.begin(), layers.end())),
                                  full.words()));
  }
  if (found.empty()) return satisfactory("no layer has nearly all of its precisions at the bound");
  return {fmt::format("at least {:.0f}% of a layer's precisions are at their upper bound: {}; where precisions "
                      "are at their bound, K says nothing of the evidence",
                      100 * nearly_all, fmt::join(found, ", ")),
          std::move(advice)};
}

}  // namespace gainlens::analyses::training_checks
