#include "analyses/score_gain.h"

namespace gainlens::analyses {

ScoreGain score_gain(const PairedUnits& pairs, std::span<const std::size_t> cluster, const Resampling& resampling,
                     const Resamples& resamples) {
  const std::vector<SignedGroup> all = {all_units(pairs)};
  const SeedMeans means = seed_means(pairs);
  return {means.differences, compare_seeds(means, resampling), crossed_gain(pairs, all, GainScale::difference, cluster),
          crossed_gain(pairs, all, GainScale::log_ratio, cluster), bootstrap_gain(pairs, all, resamples)};
}

OrderedJson to_json(const ScoreGain& gain) {
  OrderedJson json = {{"seeds", to_json(gain.seeds)}};
  put(json, "difference", gain.difference);
  put(json, "log_ratio", gain.log_ratio);
  put(json, "bootstrap_difference", gain.bootstrap.difference);
  put(json, "bootstrap_log_ratio", gain.bootstrap.log_ratio);
  return json;
}

}  // namespace gainlens::analyses
