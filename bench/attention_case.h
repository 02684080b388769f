#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::bench {

/// One shape of causal attention that is measured.
struct AttentionCase {
  std::int64_t length = 512;
  std::int64_t heads = 16;
  std::int64_t kv_heads = 16;
  std::int64_t head_dim = 128;
  std::optional<std::int64_t> window;  ///< keys that a query sees, itself included; none: all before it
  at::ScalarType dtype = at::kFloat;

  std::int64_t group() const { return heads / kv_heads; }
};

/// "float32", "bfloat16", ... and back.
/// @throws InvalidArgument  none of float64, float32, bfloat16, float16
std::string dtype_name(at::ScalarType type);
at::ScalarType dtype_named(std::string_view name);

/// Checks that the case can be computed: heads divide, the head's size is a multiple of 8 in 16..256, and a T x T
/// tensor can be addressed.
/// @throws InvalidArgument
void check_case(const AttentionCase& shape);

/// Query-key pairs that one head has to look at: T (T + 1) / 2, less what the window hides.
double visible_pairs(const AttentionCase& shape);

/// Floating-point operations of `products` matrix products over the visible pairs of all heads, 2 for a multiply-add.
/// Attention is 2 of them (Q K^T, P V), its statistics 3 (P V^2 too). Exponentials and sums are not counted, nor what a
/// method computes beyond visible pairs.
double product_operations(const AttentionCase& shape, int products);

/// Bytes of query, key, value and output: what at least has to move between memory and processor.
double least_traffic(const AttentionCase& shape);

struct AttentionInputs {
  at::Tensor query;       ///< [head, position, head_dim]
  at::Tensor key, value;  ///< [kv_head, position, head_dim]
};

/// Standard normal, the same for the same case.
AttentionInputs random_inputs(const AttentionCase& shape);

}  // namespace gainlens::bench
