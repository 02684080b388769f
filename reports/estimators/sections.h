#pragma once

#include "analyses/estimator_truth.h"
#include "reports/figures/figure.h"
#include "reports/section.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// What the report of `gainlens estimators` is about.
struct JudgedEstimators {
  const analyses::EstimatorTruth* truth;

  std::string label() const { return "estimators"; }
};

extern const Section<JudgedEstimators> accuracy_section, trust_section;

/// Every section of a report of `gainlens estimators`, in its order.
std::span<const Section<JudgedEstimators>* const> estimator_sections();

/// Mean V over the true variance, and coverage of e ± 1.96 sqrt(V), against n_eff: a column of two panels for each
/// scenario whose true variance is not 0. Missing with one n_eff alone.
Maybe<Figure> estimators_figure(const analyses::EstimatorTruth& truth);

}  // namespace gainlens::reports
