#pragma once

#include "kernels/attention_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gainlens::kernels {

/// Kernels that square in float32 centre the values by the mean of this many first keys; causal queries before that
/// position, which do not see all of them, take another way.
inline constexpr std::int64_t centre_keys = 64;

/// Sizes of one call of attention, and the options' defaults filled in.
struct AttentionShape {
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t group;  ///< query heads that share a kv head
  std::int64_t length;
  std::int64_t head_dim;
  double scale;           ///< factor on q.k
  double prior_variance;  ///< sigma0^2
};

/// Sizes of tensors that have been checked.
AttentionShape shape_of(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key);

/// The keys [begin, end) that a query sees.
struct KeyRange {
  std::int64_t begin;
  std::int64_t end;

  bool empty() const { return begin >= end; }
};

/// What causality and the window leave of the keys 0..length-1 for the query at position `query`. Never empty.
KeyRange visible_keys(const AttentionOptions& options, std::int64_t length, std::int64_t query);

/// Checks the options and the three tensors, as documented at attention_statistics_reference.
/// @param where  the function's name, for messages
AttentionShape checked_shape(const char* where, const AttentionOptions& options, const at::Tensor& query,
                             const at::Tensor& key, const at::Tensor& value);

/// Smallest and largest of the elements seen, and whether all were finite.
struct Extrema {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  bool finite = true;

  void add(const Extrema& other);
  double magnitude() const { return std::max(std::abs(smallest), std::abs(largest)); }
};

/// @throws RunFailed  NaN or infinity in the tensor called `name`
void check_extrema(const char* where, const char* name, const Extrema& extrema);

/// Checks that no score computed in `compute_type` (float32 or float64) can overflow: then what a query must not see
/// reaches it as an exact zero. @throws RunFailed
void check_scores(const char* where, at::ScalarType compute_type, const AttentionShape& shape, const Extrema& query,
                  const Extrema& key);

/// Checks that no sum of squares of values can overflow. @throws RunFailed
void check_spread(const char* where, at::ScalarType compute_type, const AttentionShape& shape, const Extrema& value);

/// All of these checks, by passes over the tensors.
void check_magnitudes(const char* where, at::ScalarType compute_type, const AttentionShape& shape,
                      const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// All fields that the options ask for, of the documented shapes, on the device of `query`: `output` zero in its dtype,
/// every other one NaN in `scalar_type`.
QueryStatistics allocate_statistics(const AttentionOptions& options, const AttentionShape& shape,
                                    at::ScalarType scalar_type, const at::Tensor& query);

/// A bias of the options as a contiguous [head or 1, position] tensor; undefined where there is none.
at::Tensor bias_rows(const at::Tensor& bias, at::ScalarType compute_type);

/// lambda of every query and dimension as [head, query, head_dim], expanded without copies; undefined where the options
/// give one number.
at::Tensor precision_rows(const AttentionOptions& options, const AttentionShape& shape, at::ScalarType compute_type);

}  // namespace gainlens::kernels
