#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/query_fields.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::kernels::testing {

/// Random inputs of one attention call.
struct Inputs {
  at::Tensor query, key, value;  // [head, position, head_dim]
};

inline at::Tensor seeded_normal(at::IntArrayRef sizes, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::TensorOptions(at::kDouble));
}

/// Normal inputs of unit variance. With the default scale, the scores have variance `sharpness`^2.
/// @param value_dim  0: as head_dim
inline Inputs random_inputs(std::int64_t length, std::int64_t head_dim, std::int64_t kv_heads, std::int64_t group,
                            double sharpness = 1.5, std::int64_t value_dim = 0) {
  return {.query = sharpness * seeded_normal({kv_heads * group, length, head_dim}, 1),
          .key = seeded_normal({kv_heads, length, head_dim}, 2),
          .value = seeded_normal({kv_heads, length, value_dim == 0 ? head_dim : value_dim}, 3)};
}

inline Inputs cast(const Inputs& in, at::ScalarType type) {
  return {in.query.to(type), in.key.to(type), in.value.to(type)};
}

inline QueryStatistics streamed(const AttentionOptions& options, const Inputs& in) {
  AttentionPlan plan(options);
  return attention_statistics(plan, in.query, in.key, in.value);
}

inline QueryStatistics reference(const AttentionOptions& options, const Inputs& in) {
  return attention_statistics_reference(options, in.query, in.key, in.value);
}

struct NamedTensor {
  std::string name;
  at::Tensor QueryStatistics::*tensor;
};

/// All tensors of the result.
inline const std::vector<NamedTensor>& all_tensors() {
  using S = QueryStatistics;
  static const std::vector<NamedTensor> tensors{
      {"output", &S::output},
      {"n_eff", &S::n_eff},
      {"entropy", &S::entropy},
      {"residual", &S::residual},
      {"observation_precision", &S::observation_precision},
      {"log_observation_precision", &S::log_observation_precision},
      {"kalman_gain", &S::kalman_gain},
      {"kalman_gain_scaled", &S::kalman_gain_scaled},
      {"without_first_n_eff", &S::without_first_n_eff},
      {"without_first_residual", &S::without_first_residual},
      {"without_first_observation_precision", &S::without_first_observation_precision},
      {"without_first_kalman_gain", &S::without_first_kalman_gain},
      {"estimate_norm", &S::estimate_norm},
      {"gained_estimate_norm", &S::gained_estimate_norm},
      {"without_first_norm", &S::without_first_norm},
      {"first_mass", &S::first_mass},
      {"sink_logit_mass", &S::sink_logit_mass},
      {"first_weight", &S::first_weight},
      {"column_mean", &S::column_mean},
      {"value_variance", &S::value_variance},
      {"residual_by_dimension", &S::residual_by_dimension},
      {"observation_precision_by_dimension", &S::observation_precision_by_dimension},
  };
  return tensors;
}

/// Whether both tensors have NaN at the same places, and infinities of the same sign at the same places.
inline bool same_exceptions(const at::Tensor& a, const at::Tensor& b) {
  return at::isnan(a).equal(at::isnan(b)) && at::isposinf(a).equal(at::isposinf(b)) &&
         at::isneginf(a).equal(at::isneginf(b));
}

/// Largest |a - b| / max(|b|, 1e-3 max|b|, floor) over the finite numbers. Infinite if the tensors do not have NaN and
/// infinities at the same places.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected, double floor = 1e-300) {
  const at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  if (!same_exceptions(a, b)) return std::numeric_limits<double>::infinity();
  const at::Tensor exceptions = at::isfinite(b).logical_not(), size = b.abs().masked_fill(exceptions, 0);
  const double largest = size.max().item<double>();
  const at::Tensor error = (a - b).abs() / size.clamp_min(std::max(1e-3 * largest, floor));
  return error.masked_fill(exceptions, 0).max().item<double>();
}

/// Largest |a - b| relative to the largest |b|. For signed quantities, whose small elements are differences of large
/// numbers. Infinite if the tensors do not have NaN and infinities at the same places.
inline double error_of_largest(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  if (!same_exceptions(a, b)) return std::numeric_limits<double>::infinity();
  const at::Tensor exceptions = at::isfinite(b).logical_not();
  const at::Tensor error = (a - b).abs().masked_fill(exceptions, 0), size = b.abs().masked_fill(exceptions, 0);
  return error.max().item<double>() / std::max(size.max().item<double>(), 1e-300);
}

/// Error of one field. For `output` it is relative to the largest element, for the other fields it is relative_error.
/// Numbers near zero are compared with 1e-2 of the field's unit, which is 1 nat for the entropy and the mean value
/// variance for S.
inline double field_error(const NamedTensor& field, const QueryStatistics& actual, const QueryStatistics& expected) {
  const auto& [name, tensor] = field;
  if (name == "output") return error_of_largest(actual.output, expected.output);
  const double value_scale = expected.value_variance.mean().item<double>();
  const double unit = name == "entropy" ? 1 : name.find("residual") != std::string::npos ? value_scale : 0;
  return relative_error(actual.*tensor, expected.*tensor, std::max(1e-2 * unit, 1e-300));
}

/// Whether both have the same bits, including NaN.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace gainlens::kernels::testing
