#pragma once

#include "models/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace gainlens::models {

/// Rows of a query projection beyond heads x head_dim: heads for a headwise gate, heads x head_dim for an elementwise one, 0 for none.
std::int64_t gate_rows(const DecoderConfig& config);

/// Splits a query projection (weight [rows, width] or bias [rows]) into the queries' rows and the gate's, both contiguous.
///
/// Rows lie per KV head: the queries of its group, then the gate scores of its group (method.md "Gates").
/// @param projection  rows = heads head_dim + gate_rows(config)
std::pair<at::Tensor, at::Tensor> split_gate_rows(const DecoderConfig& config, const at::Tensor& projection);

/// The inverse of split_gate_rows.
/// @param queries  rows = heads head_dim
/// @param gate     rows = gate_rows(config)
at::Tensor merge_gate_rows(const DecoderConfig& config, const at::Tensor& queries, const at::Tensor& gate);

}  // namespace gainlens::models
