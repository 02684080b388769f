#pragma once

#include "kernels/attention_statistics.h"
#include "kernels/scalar_values.h"

#include <array>
#include <string_view>

namespace gainlens::kernels {

/// One scalar: its name, and where it stands in each of the structs.
struct QueryField {
  std::string_view name;
  at::Tensor QueryStatistics::*tensor;  ///< [head, query]
  double QueryScalars::*scalar;
  bool ReturnedFields::*choice;  ///< null: always returned

  bool wanted(const ReturnedFields& returned) const { return choice == nullptr || returned.*choice; }
};

namespace choices {
inline constexpr bool ReturnedFields::*always = nullptr;
inline constexpr bool ReturnedFields::*entropy = &ReturnedFields::entropy;
inline constexpr bool ReturnedFields::*log_observation_precision = &ReturnedFields::log_observation_precision;
inline constexpr bool ReturnedFields::*kalman_gain_scaled = &ReturnedFields::kalman_gain_scaled;
inline constexpr bool ReturnedFields::*without_first = &ReturnedFields::without_first;
inline constexpr bool ReturnedFields::*without_first_moments = &ReturnedFields::without_first_moments;
inline constexpr bool ReturnedFields::*norms = &ReturnedFields::norms;
}  // namespace choices

/// Every scalar, in the order of the list.
inline constexpr auto query_fields = std::to_array<QueryField>({
#define GAINLENS_QUERY_FIELD(name, returned, ...) \
  {#name, &QueryStatistics::name, &QueryScalars::name, choices::returned},
    GAINLENS_QUERY_SCALARS(GAINLENS_QUERY_FIELD)
#undef GAINLENS_QUERY_FIELD
});

/// The field of this name. @throws InternalError  there is none
const QueryField& query_field(std::string_view name);

/// The tensors of QueryStatistics that are not in query_fields, except value_variance.
struct StatisticsTensor {
  at::Tensor QueryStatistics::*tensor;
  bool by_position;  ///< [head, query or key, ...]; else [head, ...]
};

inline constexpr std::array<StatisticsTensor, 11> other_tensors{{
    {&QueryStatistics::output, true},
    {&QueryStatistics::first_mass, true},
    {&QueryStatistics::sink_logit_mass, true},
    {&QueryStatistics::first_weight, true},
    {&QueryStatistics::residual_by_dimension, true},
    {&QueryStatistics::observation_precision_by_dimension, true},
    {&QueryStatistics::key_mean, true},
    {&QueryStatistics::key_queries, true},
    {&QueryStatistics::top_key, true},
    {&QueryStatistics::top_weight, true},
    {&QueryStatistics::column_mean, false},
}};

}  // namespace gainlens::kernels
