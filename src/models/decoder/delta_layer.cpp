#include "models/decoder/delta_layer.h"

#include "kernels/delta/causal_convolution.h"
#include "kernels/delta/gated_delta_rule.h"
#include "kernels/fixed_sizes.h"
#include "models/decoder/block_positions.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::models {
namespace {

static_assert(block_positions % kernels::delta_chunk_positions == 0);

/// One pass over a batch of sequences, whose state goes from one block of positions to the next.
class DeltaPass {
 public:
  DeltaPass(const DecoderConfig& config, const LayerProjections& projections, const LayerWeights& rest,
            DeltaState& state)
      : config_(config), projections_(projections), rest_(rest), state_(state) {}

  /// What the heads give for the next positions, [batch, position, value_heads value_dim].
  at::Tensor next(const at::Tensor& input) {
    const DeltaLayers& of = config_.delta;
    const at::Tensor query = heads(projections_.delta_query(input), 0, of.key_heads, state_.query_past);
    const at::Tensor key = heads(projections_.delta_key(input), of.keys(), of.key_heads, state_.key_past);
    const at::Tensor value = heads(projections_.delta_value(input), 2 * of.keys(), of.value_heads, state_.value_past);
    const at::Tensor beta = widened(at::sigmoid(projections_.delta_beta(input)));
    const at::Tensor steps = at::softplus(widened(projections_.delta_decay(input)) + widened(rest_.delta_decay_bias));
    const at::Tensor result =
        kernels::gated_delta_rule_chunked({kernels::l2_normalised(query), kernels::l2_normalised(key), widened(value),
                                           -widened(rest_.delta_log_rate).exp() * steps, beta},
                                          state_.state);
    const at::Tensor normed =
        norm(result.to(input.scalar_type()), Norm::rms, config_.norm_epsilon, rest_.delta_norm, 0);
    const at::Tensor gate = at::silu(widened(projections_.delta_gate(input))).view(normed.sizes());
    return (widened(normed) * gate).to(input.scalar_type()).flatten(2);
  }

 private:
  /// Projected rows after the convolution, [batch, position, head, size].
  /// @param channel  the first channel of these rows in the weight of the convolution
  at::Tensor heads(const at::Tensor& rows, std::int64_t channel, std::int64_t count, at::Tensor& past) const {
    const at::Tensor weight = rest_.delta_convolution.narrow(0, channel, rows.size(2));
    return kernels::causal_convolution_silu(rows, weight, past).unflatten(2, {count, -1});
  }

  const DecoderConfig& config_;
  const LayerProjections& projections_;
  const LayerWeights& rest_;
  DeltaState& state_;
};

}  // namespace

at::Tensor delta_layer(const DecoderConfig& config, const LayerProjections& projections, const LayerWeights& rest,
                       const at::Tensor& input, const at::Tensor& residual, DeltaState* state) {
  DeltaState own;
  DeltaPass pass(config, projections, rest, state != nullptr ? *state : own);
  at::Tensor output = at::empty(input.sizes(), input.options());
  for (std::int64_t begin = 0; begin < input.size(1); begin += block_positions) {
    const std::int64_t end = std::min(begin + block_positions, input.size(1));
    const auto part = [&](const at::Tensor& tensor) { return tensor.slice(1, begin, end).contiguous(); };
    output.slice(1, begin, end)
        .copy_(projections.delta_output(pass.next(part(input)), kernels::Activation::none,
                                        residual.defined() ? part(residual) : residual));
  }
  return output;
}

}  // namespace gainlens::models
