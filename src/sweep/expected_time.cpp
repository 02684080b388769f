#include "sweep/expected_time.h"

#include "kernels/attention_statistics.h"
#include "kernels/linear/linear.h"
#include "models/checkpoint/operations_needed.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace gainlens::sweep {
namespace {

/// Rate of the fastest of several runs: the others waited for something.
double best_rate(double operations, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  run();  // the first run takes memory from the system
  double shortest = 1e30;
  const auto begin = Clock::now();
  for (int i = 0; i < 3 || Clock::now() - begin < std::chrono::milliseconds(100); ++i) {
    const auto before = Clock::now();
    run();
    shortest = std::min(shortest, std::chrono::duration<double>(Clock::now() - before).count());
  }
  return operations / shortest;
}

/// Norms, rotations, activations and memory traffic, as a share of the time of the products and of attention. Measured
/// (docs/performance.md).
constexpr double rest_of_layers = 1.15;

}  // namespace

MachineRates measured_rates(at::ScalarType dtype, std::int64_t head_dim) {
  const c10::InferenceMode inference;
  const auto options = at::TensorOptions().dtype(dtype);
  MachineRates rates;
  constexpr std::int64_t tokens = 512, width = 1024, vocabulary = 8192;
  const at::Tensor input = at::ones({tokens, width}, options) / 32;
  const kernels::PackedWeight weight(at::ones({width, width}, options) / 32);
  rates.products = best_rate(2.0 * tokens * width * width, [&] { kernels::linear(input, weight); });
  const kernels::PackedWeight head(at::ones({vocabulary, width}, options) / 32);
  const at::Tensor targets = at::zeros({tokens}, at::kLong);
  rates.likelihood =
      best_rate(2.0 * tokens * width * vocabulary, [&] { kernels::target_losses(input, head, targets); });
  const at::Tensor heads = at::ones({4, 2 * tokens, head_dim}, options);
  kernels::AttentionPlan plan({.returned = {.without_first_moments = false}});
  rates.attention = best_rate(6.0 * 4 * static_cast<double>(head_dim) * tokens * (2 * tokens + 1),
                              [&] { kernels::attention_statistics(plan, heads, heads, heads); });
  return rates;
}

ExpectedTime expected_time(const models::DecoderConfig& config, std::int64_t positions, const MachineRates& rates) {
  const models::OperationsNeeded needed = models::operations_needed(config, positions);
  return {rest_of_layers * (needed.products / rates.products + needed.attention / rates.attention),
          needed.likelihood / rates.likelihood};
}

}  // namespace gainlens::sweep
