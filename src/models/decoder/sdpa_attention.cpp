#include "models/decoder/attention_ops.h"

#include "kernels/gradient/attention_gradient.h"
#include "kernels/gradient/training_attention.h"

#include <ATen/ATen.h>

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

}  // namespace

at::Tensor SdpaAttention::run(std::int64_t, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  if (needs_mask(qkv, options)) return blocked(qkv, options);
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

}  // namespace gainlens::models
