#include "models/decoder/attention_ops.h"

#include "kernels/attention_inputs.h"
#include "kernels/gradient/attention_gradient.h"
#include "kernels/gradient/packed_attention.h"
#include "kernels/gradient/training_attention.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gainlens::models {
namespace {

/// Whether libtorch's SDPA would need a T x T mask.
bool needs_mask(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  const bool hidden_by_window = options.window && *options.window < qkv.key.size(2);
  return hidden_by_window || options.soft_cap != 0 || options.key_bias.defined() || options.distance_bias.defined() ||
         options.sink_logit.defined() || !options.sequences.empty();
}

at::Tensor blocked(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  std::vector<at::Tensor> outputs;
  for (std::int64_t sequence = 0; sequence < qkv.query.size(0); ++sequence) {
    outputs.push_back(kernels::attention_with_gradient(options, qkv.query[sequence], qkv.key[sequence],
                                                       qkv.value[sequence], kernels::Moments::none)
                          .output);
  }
  return at::stack(outputs);
}

/// The sequences of the batch one after another.
hooks::ObservedAttention packed(const hooks::Qkv& qkv, const kernels::AttentionOptions& options,
                                const hooks::PrecisionBias& bias) {
  const std::int64_t batch = qkv.query.size(0), heads = qkv.query.size(1), length = qkv.query.size(2);
  const auto rows = [heads](const at::Tensor& t) {  // [position, head, head_dim]
    const at::Tensor by_position = t.transpose(1, 2).flatten(0, 1);
    return t.size(1) == heads ? by_position : by_position.repeat_interleave(heads / t.size(1), 1);
  };
  kernels::PackedBounds begin;
  for (std::int64_t sequence = 0; sequence <= batch; ++sequence) begin.push_back(sequence * length);
  const kernels::PackedMoments found =
      kernels::packed_attention_moments(rows(qkv.query), rows(qkv.key), rows(qkv.value), begin,
                                        {.scale = options.scale,
                                         .key_bias = bias.key.defined() ? bias.key.flatten() : bias.key,
                                         .distance_slope = bias.log_decay});
  const auto by_head = [batch](const at::Tensor& t) { return t.unflatten(0, {batch, -1}).transpose(1, 2); };
  return {by_head(found.output), by_head(found.n_eff), by_head(found.residual)};
}

/// Queries, keys and values of one width, with zeros added to the narrower ones.
hooks::Qkv of_one_width(const hooks::Qkv& qkv) {
  const std::int64_t width = std::max(qkv.key.size(3), qkv.value.size(3));
  const auto wide = [width](const at::Tensor& x) { return at::constant_pad_nd(x, {0, width - x.size(3)}); };
  return {wide(qkv.query), wide(qkv.key), wide(qkv.value)};
}

}  // namespace

at::Tensor SdpaAttention::run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  // These kernels have one width; libtorch would make a T x T matrix.
  if (const std::int64_t width = qkv.value.size(3); width != qkv.key.size(3)) {
    kernels::AttentionOptions own = options;
    if (own.scale == 0) own.scale = 1 / std::sqrt(static_cast<double>(qkv.key.size(3)));
    return run(layer, of_one_width(qkv), own).narrow(3, 0, width);
  }
  if (needs_mask(qkv, options)) return blocked(qkv, options);
  // A score that overflows to -infinity would hide its key. Training reads no number back.
  if (!kernels::is_tracked(qkv.query)) kernels::check_products("attention", options.scale, qkv.query, qkv.key);
  // In float32 on the CPU ours is faster than libtorch's, with gradient and without.
  if (kernels::training_attention_takes(qkv.query, qkv.key, qkv.value)) {
    const double usual = 1 / std::sqrt(static_cast<double>(qkv.query.size(3)));
    return kernels::training_attention(qkv.query, qkv.key, qkv.value, options.scale == 0 ? usual : options.scale,
                                       options.causal);
  }
  const bool grouped = qkv.query.size(1) != qkv.key.size(1);
  const std::optional<double> scale = options.scale == 0 ? std::nullopt : std::optional<double>(options.scale);
  return at::scaled_dot_product_attention(qkv.query, qkv.key, qkv.value, /*attn_mask=*/{}, /*dropout_p=*/0,
                                          options.causal, scale, grouped);
}

hooks::ObservedAttention SdpaAttention::run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                                         const kernels::AttentionOptions& options,
                                                         const hooks::PrecisionBias& bias) {
  const bool tracked = kernels::is_tracked(qkv.query) || kernels::is_tracked(qkv.key) ||
                       kernels::is_tracked(qkv.value) || kernels::is_tracked(bias.key) ||
                       kernels::is_tracked(bias.log_decay);
  if (!tracked) {  // the kernel of the statistics is much faster than those with gradients
    constexpr kernels::ReturnedFields moments{.entropy = false,
                                              .log_observation_precision = false,
                                              .kalman_gain_scaled = false,
                                              .without_first = false,
                                              .without_first_moments = false,
                                              .norms = false,
                                              .first_masses = 0};
    StatisticsAttention streamed([](auto, auto&&) {}, kernels::AttentionBackend::automatic, moments);
    return streamed.run_with_moments(layer, qkv, options, bias);
  }
  const bool in_one_loop = qkv.query.is_cpu() && qkv.query.scalar_type() == at::kFloat && options.causal;
  if (in_one_loop && !needs_mask(qkv, options)) return packed(qkv, options, bias);
  std::vector<at::Tensor> outputs, n_effs, residuals;
  for (std::int64_t sequence = 0; sequence < qkv.query.size(0); ++sequence) {
    const kernels::DifferentiableAttention found = kernels::attention_with_gradient(
        options_of_sequence(options, bias, sequence, qkv.key.size(2)), qkv.query[sequence], qkv.key[sequence],
        qkv.value[sequence], kernels::Moments::all);
    outputs.push_back(found.output);
    n_effs.push_back(found.n_eff);
    residuals.push_back(found.residual);
  }
  return {at::stack(outputs), at::stack(n_effs), at::stack(residuals)};
}

}  // namespace gainlens::models
