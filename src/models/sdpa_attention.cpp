#include "models/attention_ops.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

namespace gainlens::models {
namespace {

bool needs_mask(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  const bool hidden_by_window = options.window && *options.window < qkv.key.size(2);
  return hidden_by_window || options.soft_cap != 0 || options.key_bias.defined() || options.sink_logit.defined();
}

bool needs_gradient(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  if (!at::GradMode::is_enabled()) return false;
  return qkv.query.requires_grad() || qkv.key.requires_grad() || qkv.value.requires_grad() ||
         (options.key_bias.defined() && options.key_bias.requires_grad()) ||
         (options.sink_logit.defined() && options.sink_logit.requires_grad());
}

at::Tensor blocked(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  std::vector<at::Tensor> outputs;
  for (std::int64_t sequence = 0; sequence < qkv.query.size(0); ++sequence) {
    outputs.push_back(kernels::attention_blocked(options, qkv.query[sequence], qkv.key[sequence], qkv.value[sequence]));
  }
  return at::stack(outputs);
}

}  // namespace

at::Tensor SdpaAttention::run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  if (needs_mask(qkv, options)) {
    return needs_gradient(qkv, options) ? MaterialisedAttention().run(layer, qkv, options) : blocked(qkv, options);
  }
  const bool grouped = qkv.query.size(1) != qkv.key.size(1);
  const std::optional<double> scale = options.scale == 0 ? std::nullopt : std::optional<double>(options.scale);
  return at::scaled_dot_product_attention(qkv.query, qkv.key, qkv.value, /*attn_mask=*/{}, /*dropout_p=*/0, options.causal, scale, grouped);
}

}  // namespace gainlens::models
