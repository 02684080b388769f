#include "models/decoder/attention_ops.h"

#include "kernels/attention_inputs.h"
#include "kernels/gradient/attention_gradient.h"
#include "kernels/gradient/training_attention.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gainlens::models {
namespace {

/// Whether libtorch's attention would make a T x T matrix on a GPU: its kernels without one take 16-bit types alone, or
/// round float32 further.
bool makes_matrix(const at::Tensor& query) {
  return !query.is_cpu() && query.element_size() > 2;
}

/// Whether libtorch's attention would need a T x T mask; nor do the tiles of kernels::training_attention() serve it.
bool needs_mask(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  const bool hidden_by_window = options.window && *options.window < qkv.key.size(2);
  return hidden_by_window || options.soft_cap != 0 || options.key_bias.defined() || options.distance_bias.defined() ||
         options.sink_logit.defined() || !options.sequences.empty();
}

double scale_of(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  return options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(qkv.key.size(3)));
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

/// Queries, keys and values of one width, with zeros added to the narrower ones.
hooks::Qkv with_one_width(const hooks::Qkv& qkv) {
  const std::int64_t width = std::max(qkv.key.size(3), qkv.value.size(3));
  const auto wide = [width](const at::Tensor& x) { return at::constant_pad_nd(x, {0, width - x.size(3)}); };
  return {wide(qkv.query), wide(qkv.key), wide(qkv.value)};
}

}  // namespace

at::Tensor UsualAttention::run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  // These kernels have one width; libtorch would make a T x T matrix.
  if (const std::int64_t width = qkv.value.size(3); width != qkv.key.size(3)) {
    kernels::AttentionOptions own = options;
    own.scale = scale_of(qkv, options);
    return run(layer, with_one_width(qkv), own).narrow(3, 0, width);
  }
  if (needs_mask(qkv, options) || makes_matrix(qkv.query)) return blocked(qkv, options);
  // A score that overflows to -infinity would hide its key. Training reads no number back.
  if (!kernels::is_tracked(qkv.query)) kernels::check_products("attention", options.scale, qkv.query, qkv.key);
  // In float32 on the CPU ours is faster than libtorch's, with gradient and without.
  if (kernels::training_attention_takes(qkv.query, qkv.key, qkv.value)) {
    return kernels::training_attention(qkv.query, qkv.key, qkv.value, scale_of(qkv, options), options.causal);
  }
  const bool grouped = qkv.query.size(1) != qkv.key.size(1);
  const std::optional<double> scale = options.scale == 0 ? std::nullopt : std::optional<double>(options.scale);
  return at::scaled_dot_product_attention(qkv.query, qkv.key, qkv.value, /*attn_mask=*/{}, /*dropout_p=*/0,
                                          options.causal, scale, grouped);
}

hooks::ObservedAttention UsualAttention::run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                                          const kernels::AttentionOptions& options,
                                                          const hooks::PrecisionBias& bias) {
  const bool tracked = kernels::is_tracked(qkv.query) || kernels::is_tracked(qkv.key) ||
                       kernels::is_tracked(qkv.value) || kernels::is_tracked(bias.key) ||
                       kernels::is_tracked(bias.log_decay);
  if (!tracked) {  // the kernel of the statistics is much faster than those with gradients
    kernels::ReturnedFields moments = kernels::moments_alone;
    moments.output = true;
    StatisticsAttention streamed([](auto, auto&&) {}, kernels::AttentionBackend::automatic, moments);
    return streamed.run_with_moments(layer, qkv, options, bias);
  }
  if (kernels::training_attention_takes(qkv.query, qkv.key, qkv.value) && !needs_mask(qkv, options)) {
    const kernels::TrainedMoments found = kernels::training_attention_moments(
        qkv.query, qkv.key, qkv.value, scale_of(qkv, options), options.causal, {bias.key, bias.log_decay});
    return {found.output, found.n_eff, found.residual};
  }
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
