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
  std::optional<std::int64_t> window;  ///< keys that a query sees, itself included; empty: itself and all before it
  at::ScalarType dtype = at::kFloat;

  std::int64_t group() const { return heads / kv_heads; }
};

/// The names of the types, "float32", "bfloat16", ..., and the types by name.
/// @throws InvalidArgument  not float64, float32, bfloat16 or float16
std::string dtype_name(at::ScalarType type);
at::ScalarType dtype_named(std::string_view name);

/// Checks that the case can be computed: the number of KV heads divides that of heads, head_dim is a multiple of 8 in
/// 16..256, and length and heads are not above their limits.
/// @throws InvalidArgument
void check_case(const AttentionCase& shape);

/// Number of visible query-key pairs of one head: T (T + 1) / 2, minus the pairs that the window hides.
double visible_pairs(const AttentionCase& shape);

/// Floating-point operations of `products` matrix products over the visible pairs of all heads; a multiply-add counts
/// as 2. Attention has 2 products (Q K^T, P V), attention with statistics has 3 (also P V^2). Exponentials, sums and
/// operations on hidden pairs are not counted.
double product_operations(const AttentionCase& shape, int products);

/// Bytes of query, key, value and output: the least that must move between memory and processor.
double min_traffic(const AttentionCase& shape);

struct AttentionInputs {
  at::Tensor query;       ///< [head, position, head_dim]
  at::Tensor key, value;  ///< [kv_head, position, head_dim]
};

/// Standard normal inputs; the same case gives the same inputs.
AttentionInputs random_inputs(const AttentionCase& shape);

}  // namespace gainlens::bench
