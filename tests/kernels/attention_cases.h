#pragma once

#include "kernels/attention_agreement.h"

#include <cmath>
#include <ostream>

// Masks, shapes and hard inputs with which every backend is tested.

namespace gainlens::kernels::testing {

/// The hidden keys, and other changes of the scores.
struct Mask {
  std::string name;
  bool causal = true;
  std::optional<std::int64_t> window;
  double soft_cap = 0;
  bool shared_bias = false, head_bias = false;  // both hold some -inf
  bool sink = false;
  int distance_bias = 0;   // number of dimensions of the tensor; 0: no bias
  int precision_dims = 0;  // number of dimensions of the tensor with lambda by dimension; 0: lambda is one number
};

inline const std::vector<Mask> all_masks{
    {"causal"},
    {"full", false},
    {"window1", true, 1},
    {"window7", true, 7},
    {"window64", true, 64},
    {"window100", true, 100},
    {"window7both", false, 7},
    {"window100both", false, 100},
    {"softcap", true, {}, 2.5},
    {"bias", true, {}, 0, true},
    {"headbiasfull", false, {}, 0, false, true},
    {"sink", true, {}, 0, false, false, true},
    {"distance", true, {}, 0, false, false, false, 1},
    {"headdistancefull", false, {}, 0, false, false, false, 2},
    {"lambda1", true, {}, 0, false, false, false, 0, 1},
    {"lambda2", true, {}, 0, false, false, false, 0, 2},
    {"lambda3", true, {}, 0, false, false, false, 0, 3},
    {"everything", true, 40, 2.5, false, true, true, 2, 3},
};

struct Shape {
  std::int64_t length, head_dim, kv_heads, group;
  std::int64_t other_value_dim = 0;  // 0: values have head_dim dimensions

  std::int64_t heads() const { return kv_heads * group; }
  std::int64_t value_dim() const { return other_value_dim == 0 ? head_dim : other_value_dim; }
  Inputs inputs() const { return random_inputs(length, head_dim, kv_heads, group, 1.5, other_value_dim); }
};

inline void PrintTo(const Mask& mask, std::ostream* out) {
  *out << mask.name;
}
inline void PrintTo(const Shape& shape, std::ostream* out) {
  *out << "T = " << shape.length << ", d = " << shape.head_dim;
}

inline AttentionOptions options_of(const Mask& mask, const Shape& shape) {
  AttentionOptions options{
      .causal = mask.causal, .window = mask.window, .soft_cap = mask.soft_cap, .returned = {.per_dimension = true}};
  const std::int64_t heads = shape.heads(), length = shape.length;
  if (mask.shared_bias || mask.head_bias) {
    at::Tensor bias = seeded_normal({mask.head_bias ? heads : 1, length}, 5);
    bias.masked_fill_(seeded_normal(bias.sizes(), 6) > 0.8, -INFINITY);
    options.key_bias = mask.head_bias ? bias : bias[0];
  }
  if (mask.sink) options.sink_logit = seeded_normal({heads}, 7);
  if (mask.distance_bias == 1) options.distance_bias = -0.05 * at::arange(length, at::TensorOptions(at::kDouble));
  if (mask.distance_bias == 2) options.distance_bias = seeded_normal({heads, length}, 8);
  if (mask.precision_dims == 1) options.prior_precision_by_dimension = seeded_normal({shape.value_dim()}, 9).abs();
  if (mask.precision_dims == 2)
    options.prior_precision_by_dimension = seeded_normal({heads, shape.value_dim()}, 9).abs();
  if (mask.precision_dims == 3)
    options.prior_precision_by_dimension = 30 * seeded_normal({heads, length, shape.value_dim()}, 9).abs();
  return options;
}

/// Inputs and options for which rounding has a large effect.
struct HardCase {
  std::string name;
  AttentionOptions options;
  Inputs inputs;  // float64
};

inline std::vector<HardCase> hard_cases(std::int64_t length, std::int64_t head_dim) {
  const auto drawn = [&](double sharpness) { return random_inputs(length, head_dim, 1, 2, sharpness); };
  const auto biased = [&](double bias, std::int64_t key) {
    AttentionOptions options{.key_bias = at::zeros({length}, at::TensorOptions(at::kDouble))};
    options.key_bias[key] = bias;
    return options;
  };
  Inputs equal = drawn(1), shifted = drawn(1.5);
  equal.query.zero_();
  shifted.value = shifted.value * std::sqrt(1e-3) + 1e3;
  return {{"equal_scores", {}, equal},
          {"sharp", {}, drawn(300)},
          {"spread_1e4", {}, drawn(3000)},
          {"sink_1e-13", biased(35, 0), drawn(1.5)},
          {"huge_bias_key_0", biased(120, 0), drawn(1.5)},
          {"huge_bias_late", biased(120, length / 2), drawn(1.5)},
          {"mean_1e3_var_1e-3", {}, shifted}};
}

}  // namespace gainlens::kernels::testing
