#pragma once

#include "analyses/arm_pairs.h"
#include "reports/figures/figure.h"
#include "reports/page/csv_table.h"

#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// The learning curves of an arm, with the name that readers see.
struct LabelledCurves {
  std::string label;
  std::vector<analyses::ArmCurve> curves;  ///< empty: an arm without training
  std::size_t style;                       ///< number of its style (palette.h)
};

/// "NDCG@10": the metric that chooses the epoch of a recommender, as papers print it.
std::string curve_metric_title();

/// What ArmCurve::values are.
struct CurveMetric {
  std::string title = curve_metric_title();                  ///< "NDCG@10"
  std::string held_out = "validation";                       ///< before the title
  std::string items = "validation items";                    ///< what it is measured on
  std::string column = std::string(analyses::curve_metric);  ///< of the table
};

/// The training loss and the validation metric of arms against epochs: each seed a thin line with its best epoch, the
/// mean over seeds a thick one. The mean ends with the shortest training, so that every point of it holds all seeds.
/// A run without losses has one panel. Missing if no arm is trained.
/// @param arms  with styles below `max_runs`
/// @param name  stem of its files
Maybe<Figure> learning_curves_figure(std::span<const LabelledCurves> arms, const std::string& name,
                                     const CurveMetric& metric = {});

/// Its caption's sentence on what is drawn, without the names of the arms.
std::string learning_curves_in_words(std::span<const LabelledCurves> arms, const CurveMetric& metric = {});

/// arm, seed, epoch, training loss, validation metric, whether it is the best epoch.
CsvTable learning_curves_csv(std::span<const LabelledCurves> arms, const CurveMetric& metric = {});

}  // namespace gainlens::reports
