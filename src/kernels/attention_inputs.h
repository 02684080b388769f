#pragma once

#include "kernels/attention_statistics.h"
#include "kernels/extrema.h"
#include "kernels/tile_sizes.h"

#include <cstdint>

namespace gainlens::kernels {

/// Sizes of one call of attention. Options that were left at their defaults have their numbers here. In ordinary
/// attention key_dim and value_dim are one number, called head_dim. They differ in latent attention.
struct AttentionShape {
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t group;  ///< query heads that share a kv head
  std::int64_t length;
  std::int64_t key_dim;    ///< width of queries and keys
  std::int64_t value_dim;  ///< width of values: d in docs/method.md
  double scale;            ///< factor on q.k
  double prior_variance;   ///< sigma0^2
};

/// Sizes of tensors that have been checked.
AttentionShape shape_of(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value);

/// The keys [begin, end) that a query sees.
struct KeyRange {
  std::int64_t begin;
  std::int64_t end;

  bool empty() const { return begin >= end; }
};

/// The keys of 0..length-1 that the query at position `query` sees under causality and the window. Never empty.
KeyRange visible_keys(const AttentionOptions& options, std::int64_t length, std::int64_t query);

/// The queries [begin, end) that see the key at position `key` under causality, window and `first_query`. May be empty.
KeyRange seeing_queries(const AttentionOptions& options, std::int64_t length, std::int64_t key);

/// Checks the options and the three tensors, as documented at attention_statistics_reference.
/// @param where  the function's name, for messages
AttentionShape checked_shape(const char* where, const AttentionOptions& options, const at::Tensor& query,
                             const at::Tensor& key, const at::Tensor& value);

/// @throws RunFailed  NaN or infinity in the tensor called `name`
void check_extrema(const char* where, const char* name, const Extrema& extrema);

/// Checks that no score computed in `compute_type` (float32 or float64) can overflow. As long as no score overflows, a
/// hidden key has a weight of exactly zero.
/// @throws RunFailed  a score may overflow
void check_scores(const char* where, at::ScalarType compute_type, const AttentionShape& shape, const Extrema& query,
                  const Extrema& key);

/// Checks that no sum of squares of values can overflow.
/// @throws RunFailed  a sum may overflow
void check_spread(const char* where, at::ScalarType compute_type, const AttentionShape& shape, const Extrema& value);

/// Makes the checks of queries, keys and scores above, by passes over the tensors.
/// @param query, key  [.., key_dim]
/// @param scale       0: 1 / sqrt(key_dim)
/// @throws RunFailed  as the checks above
void check_products(const char* where, double scale, const at::Tensor& query, const at::Tensor& key);

/// Makes the three checks above, by passes over the tensors.
/// @throws RunFailed  as the checks above
void check_magnitudes(const char* where, at::ScalarType compute_type, const AttentionShape& shape,
                      const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// Allocates every field that the options ask for, with the documented shape, on the device of `query`. `output` is
/// zero and has the dtype of `query`. Every other field is NaN and has the dtype `scalar_type`.
QueryStatistics allocate_statistics(const AttentionOptions& options, const AttentionShape& shape,
                                    at::ScalarType scalar_type, const at::Tensor& query);

/// A bias of the options as a contiguous [head or 1, position] tensor; undefined if `bias` is undefined.
at::Tensor bias_rows(const at::Tensor& bias, at::ScalarType compute_type);

/// lambda of every query and dimension as [head, query, value_dim], expanded without copies. Undefined if the options
/// give one number for all.
at::Tensor precision_rows(const AttentionOptions& options, const AttentionShape& shape, at::ScalarType compute_type);

}  // namespace gainlens::kernels
