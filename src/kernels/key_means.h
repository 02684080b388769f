#pragma once

#include "kernels/attention_inputs.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace gainlens::kernels {

/// The windows of queries over which the weights of a key are averaged: all queries, the second half, the last quarter.
inline constexpr std::int64_t key_windows = 3;

/// First query of each window.
std::array<std::int64_t, key_windows> key_window_begins(std::int64_t length);

/// Number of queries that see each key, [head, key] int64: under causality, window, `first_query` and biases of -inf. A
/// key that a key bias hides has 0.
at::Tensor queries_of_keys(const AttentionOptions& options, const AttentionShape& shape, const at::Device& device);

/// Sets `key_mean` and `key_queries` of the result from sums over queries. `n_eff` must be there: it says which queries
/// see a key.
/// @param sums    [head, window, key] float64: sum of p over the queries of the window
/// @param counts  queries_of_keys()
void finish_key_means(const ReturnedFields& returned, const at::Tensor& sums, const at::Tensor& counts,
                      QueryStatistics& result);

}  // namespace gainlens::kernels
