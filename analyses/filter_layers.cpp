#include "analyses/filter_layers.h"

#include <algorithm>

namespace gainlens::analyses {
namespace {

std::vector<const runfile::TrainedSeed*> seeds_of(const runfile::TrainedRun& run, std::size_t arm) {
  std::vector<const runfile::TrainedSeed*> seeds;
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    const auto& result = run.result(arm, seed);
    if (result && !result->filter.empty() && result->best_epoch > 0) seeds.push_back(&*result);
  }
  return seeds;
}

}  // namespace

std::vector<FilterLayer> filter_layers(const runfile::TrainedRun& run, std::size_t arm) {
  const std::vector<const runfile::TrainedSeed*> seeds = seeds_of(run, arm);
  if (seeds.empty()) return {};
  const auto epochs_of = [](const runfile::TrainedSeed& seed) { return seed.curve.begin()->second.size(); };
  const std::size_t count = seeds.front()->filter.begin()->second.size() / epochs_of(*seeds.front());
  std::size_t shortest = epochs_of(*seeds.front());
  for (const runfile::TrainedSeed* seed : seeds) shortest = std::min(shortest, epochs_of(*seed));
  std::vector<FilterLayer> layers(count);
  for (std::size_t layer = 0; layer < count; ++layer) {
    for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
      const std::string name(curve.name);
      std::vector<double>& mean = layers[layer].mean[name];
      mean.assign(shortest, 0);
      for (const runfile::TrainedSeed* seed : seeds) {
        const std::vector<double>& values = seed->filter.at(name);
        for (std::size_t epoch = 0; epoch < shortest; ++epoch)
          mean[epoch] += values.at(epoch * count + layer) / static_cast<double>(seeds.size());
        layers[layer].tested[name].push_back(
            values.at((static_cast<std::size_t>(seed->best_epoch) - 1) * count + layer));
      }
    }
  }
  return layers;
}

}  // namespace gainlens::analyses
