#pragma once

#include "kernels/attention_agreement.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

// Long texts whose values are hard for float32 sums, and the error of S in the unit of the documented bound.

namespace gainlens::kernels::testing {

/// One head over `length` positions. Only the last `queries` queries are computed.
struct LongCase {
  std::string name;
  AttentionOptions options;
  Inputs inputs;  // float32
};

inline const std::vector<std::string>& long_case_names() {
  static const std::vector<std::string> names{"step_after_64", "unequal_step", "constant_offset", "slow_drift",
                                              "normal"};
  return names;
}

/// The dimensions differ, so that each tests another sum for bad rounding.
/// @param name  one of long_case_names()
inline LongCase long_case(const std::string& name, std::int64_t length, std::int64_t head_dim, std::int64_t queries) {
  AttentionOptions options{.first_query = std::max<std::int64_t>(length - queries, 0),
                           .returned = {.per_dimension = true}};
  LongCase result{name, options, random_inputs(length, head_dim, 1, 1)};
  if (name != "normal") {
    result.inputs.query.zero_();  // all keys have the same weight
    const at::Tensor size =
        1.1 + at::arange(head_dim, at::TensorOptions(at::kDouble)) / static_cast<double>(head_dim);  // 1.1 .. 2.1
    const at::Tensor position = at::arange(length, at::TensorOptions(at::kDouble)).unsqueeze(1);
    at::Tensor value = (position.ge(centre_keys).to(at::kDouble) * size).unsqueeze(0);
    if (name == "slow_drift") value = (position / static_cast<double>(length) * size).unsqueeze(0);
    result.inputs.value = value;
  }
  if (name == "unequal_step" || name == "constant_offset") {
    result.options.key_bias = at::zeros({length}, at::TensorOptions(at::kDouble));
    if (name == "unequal_step")
      result.options.key_bias[std::min<std::int64_t>(length, centre_keys) - 1] =
          0.3;  // gives weights that are not powers of two
    if (name == "constant_offset")
      result.options.key_bias.slice(0, 0, centre_keys).fill_(-INFINITY);  // S = 0, far from c
  }
  result.inputs = cast(result.inputs, at::kFloat);
  return result;
}

/// max |S - exact S| / max (v - c)^2 over queries and dimensions. The maximum of (v - c)^2 is over all keys of a
/// dimension.
/// @param residual, expected  [1, query, head_dim], NaN before the first query
inline double error_of_residual(const at::Tensor& residual, const at::Tensor& expected, const at::Tensor& value) {
  const at::Tensor values = value.to(at::kDouble);
  const at::Tensor distance = values - values.slice(1, 0, centre_keys).mean(1, /*keepdim=*/true);
  const at::Tensor unit = distance.square().amax(1, /*keepdim=*/true);  // [1, 1, head_dim]
  const at::Tensor error = (residual.to(at::kDouble) - expected).abs() / unit;
  if (!at::isnan(residual).equal(at::isnan(expected))) return std::numeric_limits<double>::infinity();
  return at::nan_to_num(error, 0.0).max().item<double>();
}

}  // namespace gainlens::kernels::testing
