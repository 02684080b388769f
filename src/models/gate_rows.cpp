#include "models/gate_rows.h"

#include "core/error.h"

#include <ATen/ATen.h>

namespace gainlens::models {

std::int64_t gate_rows(const DecoderConfig& config) {
  switch (config.gate) {
    case Gate::none:
      return 0;
    case Gate::headwise:
      return config.heads;
    case Gate::elementwise:
      return config.heads * config.head_dim;
  }
  ASSERT(false, "a gate without a name");
  return 0;
}

std::pair<at::Tensor, at::Tensor> split_gate_rows(const DecoderConfig& config, const at::Tensor& projection) {
  const std::int64_t query_rows = config.heads * config.head_dim;
  ASSERT(config.gate != Gate::none && projection.size(0) == query_rows + gate_rows(config),
         "a projection of {} rows has no gate to split off", projection.size(0));
  const at::Tensor grouped = projection.unflatten(0, {config.kv_heads, -1});  // [kv_head, rows of its group, ...]
  const std::int64_t queries = query_rows / config.kv_heads;
  const auto rows = [&grouped](std::int64_t first, std::int64_t count) {
    return grouped.narrow(1, first, count).flatten(0, 1).contiguous();
  };
  return {rows(0, queries), rows(queries, gate_rows(config) / config.kv_heads)};
}

at::Tensor merge_gate_rows(const DecoderConfig& config, const at::Tensor& queries, const at::Tensor& gate) {
  ASSERT(config.gate != Gate::none && queries.size(0) == config.heads * config.head_dim && gate.size(0) == gate_rows(config),
         "{} query rows and {} gate rows do not make a projection of this configuration", queries.size(0), gate.size(0));
  return at::cat({queries.unflatten(0, {config.kv_heads, -1}), gate.unflatten(0, {config.kv_heads, -1})}, 1).flatten(0, 1);
}

}  // namespace gainlens::models
