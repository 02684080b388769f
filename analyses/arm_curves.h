#pragma once

#include "analyses/arm_pairs.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// The metric on the validation items that chooses the best epoch.
inline constexpr std::string_view curve_metric = "ndcg@10";

/// The learning curves of one seed.
struct ArmCurve {
  std::uint64_t seed;
  std::vector<double> values;     ///< [epoch] `curve_metric`
  std::int64_t best_epoch;        ///< from 1
  std::vector<double> loss = {};  ///< [epoch] the training loss, nats; empty: the run does not hold it
};

/// The curves of all finished seeds; empty: an arm without training.
std::vector<ArmCurve> curves_of(const RecommenderArm& arm);

/// Mean over seeds of `values` or `loss`. It ends with the shortest curve, so that every point of it holds all seeds.
/// @returns  [epoch]; empty without curves
std::vector<double> mean_curve(std::span<const ArmCurve> curves, std::vector<double> ArmCurve::*member);

}  // namespace gainlens::analyses
