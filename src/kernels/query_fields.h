#pragma once

#include "kernels/attention_statistics.h"

#include <array>
#include <limits>

namespace gainlens::kernels {

/// The scalar statistics of one query; the fields of QueryStatistics with the same names hold them for all queries.
struct QueryScalars {
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double n_eff = nan;
  double entropy = nan;
  double residual = nan;
  double observation_precision = nan;
  double log_observation_precision = nan;
  double kalman_gain = nan;
  double kalman_gain_scaled = nan;
  double without_first_n_eff = nan;
  double without_first_residual = nan;
  double without_first_observation_precision = nan;
  double without_first_kalman_gain = nan;
  double estimate_norm = nan;
  double gained_estimate_norm = nan;
  double without_first_norm = nan;
};

struct QueryField {
  at::Tensor QueryStatistics::*tensor;  ///< [head, query]
  double QueryScalars::*scalar;
  bool ReturnedFields::*choice;  ///< null: always returned

  bool wanted(const ReturnedFields& returned) const { return choice == nullptr || returned.*choice; }
};

/// Which scalar goes into which tensor.
inline constexpr std::array<QueryField, 14> query_fields{{
    {&QueryStatistics::n_eff, &QueryScalars::n_eff, nullptr},
    {&QueryStatistics::entropy, &QueryScalars::entropy, &ReturnedFields::entropy},
    {&QueryStatistics::residual, &QueryScalars::residual, nullptr},
    {&QueryStatistics::observation_precision, &QueryScalars::observation_precision, nullptr},
    {&QueryStatistics::log_observation_precision, &QueryScalars::log_observation_precision,
     &ReturnedFields::log_observation_precision},
    {&QueryStatistics::kalman_gain, &QueryScalars::kalman_gain, nullptr},
    {&QueryStatistics::kalman_gain_scaled, &QueryScalars::kalman_gain_scaled, &ReturnedFields::kalman_gain_scaled},
    {&QueryStatistics::without_first_n_eff, &QueryScalars::without_first_n_eff, &ReturnedFields::without_first},
    {&QueryStatistics::without_first_residual, &QueryScalars::without_first_residual,
     &ReturnedFields::without_first_moments},
    {&QueryStatistics::without_first_observation_precision, &QueryScalars::without_first_observation_precision,
     &ReturnedFields::without_first_moments},
    {&QueryStatistics::without_first_kalman_gain, &QueryScalars::without_first_kalman_gain,
     &ReturnedFields::without_first},
    {&QueryStatistics::estimate_norm, &QueryScalars::estimate_norm, &ReturnedFields::norms},
    {&QueryStatistics::gained_estimate_norm, &QueryScalars::gained_estimate_norm, &ReturnedFields::norms},
    {&QueryStatistics::without_first_norm, &QueryScalars::without_first_norm, &ReturnedFields::without_first},
}};

/// Tensors of QueryStatistics beside the query_fields, with their leading dimensions.
struct StatisticsTensor {
  at::Tensor QueryStatistics::*tensor;
  bool by_query;  ///< [head, query, ...]; else [head, ...]
};

inline constexpr std::array<StatisticsTensor, 7> other_tensors{{
    {&QueryStatistics::output, true},
    {&QueryStatistics::first_mass, true},
    {&QueryStatistics::sink_logit_mass, true},
    {&QueryStatistics::first_weight, true},
    {&QueryStatistics::residual_by_dimension, true},
    {&QueryStatistics::observation_precision_by_dimension, true},
    {&QueryStatistics::column_mean, false},
}};

}  // namespace gainlens::kernels
