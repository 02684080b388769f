#pragma once

#include "kernels/delta/gated_delta_rule.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>

// Random inputs of the gated delta rule, for its tests and its benchmark.

namespace gainlens::kernels::testing {

/// How strongly the states decay.
enum class Decay {
  mild,   ///< g of about -1/2
  none,   ///< g in [-1e-6, 0]: a state forgets only what later tokens replace
  mixed,  ///< nearly none, and now and then -1e6 or minus infinity
};

struct DeltaSizes {
  std::int64_t batch = 2;
  std::int64_t key_heads = 2;
  std::int64_t value_heads = 4;
  std::int64_t key_dim = 8;
  std::int64_t value_dim = 6;
};

/// Random inputs with keys and queries of unit length. The same arguments give the same numbers, rounded to the type.
inline DeltaInputs random_delta_inputs(std::int64_t positions, Decay decay, at::ScalarType type = at::kDouble,
                                       const DeltaSizes& sizes = {}) {
  at::manual_seed(positions);
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const auto unit = [&] {
    const at::Tensor x = at::randn({sizes.batch, positions, sizes.key_heads, sizes.key_dim}, options);
    return x / x.norm(2, -1, true);
  };
  at::Tensor log_decay = -at::rand({sizes.batch, positions, sizes.value_heads}, options);
  if (decay == Decay::none) log_decay = log_decay * 1e-6;
  if (decay == Decay::mixed) {
    const at::Tensor kind = at::rand(log_decay.sizes(), options);
    log_decay = at::where(kind < 0.1, -1e6, log_decay * 1e-3);
    log_decay = at::where(kind > 0.98, -std::numeric_limits<double>::infinity(), log_decay);
  }
  at::Tensor beta = at::rand({sizes.batch, positions, sizes.value_heads}, options);
  beta = at::where(beta < 0.2, beta * 1e-9, at::where(beta > 0.8, 1.0, beta));
  const at::Tensor query = unit(), key = unit();
  const at::Tensor value = at::randn({sizes.batch, positions, sizes.value_heads, sizes.value_dim}, options);
  return {query.to(type), key.to(type), value.to(type), log_decay.to(type), beta.to(type)};
}

inline DeltaInputs cast(const DeltaInputs& inputs, at::ScalarType type) {
  return {inputs.query.to(type), inputs.key.to(type), inputs.value.to(type), inputs.log_decay.to(type),
          inputs.beta.to(type)};
}

/// The largest difference over the largest number of `exact`.
inline double largest_error(const at::Tensor& found, const at::Tensor& exact) {
  return (found.to(at::kDouble) - exact).abs().max().item<double>() / exact.abs().max().item<double>();
}

}  // namespace gainlens::kernels::testing
