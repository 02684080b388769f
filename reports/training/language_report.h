#pragma once

#include "analyses/checks/training_checks.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <cstdint>
#include <filesystem>
#include <string>
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

/// Writes the report of the training of a language model into `out`: see write_files(). Its loss curve, the losses of
/// each evaluation, and what `gainlens check` finds.
/// @param name  of its folder; untrusted
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_language_report(const analyses::LanguageTraining& training, const std::string& name,
                                    const std::filesystem::path& out, const Writing& writing);

}  // namespace gainlens::reports
