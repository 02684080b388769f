#pragma once

#include "reports/figures/figure.h"

#include <cstdint>
#include <vector>

namespace gainlens::reports {

/// An evaluation of a model in training.
struct LossCurvePoint {
  std::int64_t step;
  double training_loss;    ///< nats
  double validation_loss;  ///< nats
};

/// Training and held-out loss against steps, the best step marked: `loss-curve`.
/// @param points  at least one
Figure loss_curve_figure(const std::vector<LossCurvePoint>& points, std::int64_t best_step);

}  // namespace gainlens::reports
