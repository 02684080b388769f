#pragma once

#include "analyses/measured.h"
#include "analyses/recommender_comparison.h"
#include "reports/figures/figure.h"

#include <string>

namespace gainlens::reports {

/// The validation metric of both arms against epochs: each seed a thin line with its best epoch, the mean over seeds a
/// thick one. The mean ends with the shortest training, so that every point of it holds all seeds.
/// Missing if no arm is trained.
/// @param name  stem of its files
analyses::Maybe<Figure> learning_curves_figure(const analyses::ArmComparison& comparison, const std::string& name);

}  // namespace gainlens::reports
