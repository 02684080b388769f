#include "look/logit_parts.h"

#include "core/check.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gainlens::look {
namespace {

/// The last position, [.., width], in float64.
at::Tensor last_of(const at::Tensor& seen) {
  return seen.select(1, seen.size(1) - 1)[0].to(at::kDouble).clone();
}

}  // namespace

void LogitPartsCollector::attach(hooks::Hooks& hooks) {
  const models::DecoderConfig& config = model_.config();
  layers_.assign(static_cast<std::size_t>(config.layers), {});
  const auto keep = [&](std::int64_t layer, const char* site, at::Tensor& place) {
    hooks.observe(hooks::block_site(layer, site), [this, &place](const hooks::Site&, const at::Tensor& seen) {
      dtype_ = seen.scalar_type();
      place = last_of(seen);
    });
  };
  keep(0, "hook_resid_pre", first_);
  keep(config.layers - 1, "hook_resid_post", last_);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    LayerParts& parts = layers_[static_cast<std::size_t>(layer)];
    keep(layer, "hook_attn_out", parts.attention);
    keep(layer, "hook_mlp_out", parts.mlp);
    if (!config.attends(layer)) continue;
    keep(layer, "attn.hook_result", parts.heads);
    if (config.post_norm) keep(layer, "ln1_post.hook_normalized", parts.normalised);
  }
}

/// What each head adds to the stream behind a norm: the norm's divisor is that of their sum, and its weight a factor of
/// each coordinate. Both follow from what stands before the norm, between its two steps and behind it.
at::Tensor LogitPartsCollector::heads_behind_norm(const LayerParts& parts, bool centred) {
  const at::Tensor heads = centred ? parts.heads - parts.heads.mean(-1, /*keepdim=*/true) : parts.heads;
  const at::Tensor divisor = heads.sum(0).norm() / parts.normalised.norm();
  // A coordinate that is 0 between the steps is 0 behind the norm, whatever its weight.
  const at::Tensor weight = at::where(parts.normalised.eq(0), 0, parts.attention / parts.normalised);
  return heads * weight / divisor;
}

LogitParts LogitPartsCollector::finish(const interventions::AnswerPair& pair, double difference) const {
  const models::DecoderConfig& config = model_.config();
  const auto output = model_.output_rows(at::tensor({pair.answer, pair.foil}, at::kLong));
  const bool centred = config.norm == models::Norm::layer;
  const at::Tensor spread = centred ? last_ - last_.mean() : last_;
  const double divisor = std::sqrt(spread.square().mean().item<double>() + config.norm_epsilon);
  const at::Tensor direction = (output.rows[0] - output.rows[1]) * output.norm_weight / divisor;  // [width]
  const auto share = [&](const at::Tensor& part) {
    return direction.dot(centred ? part - part.mean() : part).item<double>();
  };

  LogitParts found;
  found.answer = static_cast<std::int32_t>(pair.answer);
  found.foil = static_cast<std::int32_t>(pair.foil);
  found.difference = difference;
  found.linear = share(last_) + (output.constant[0] - output.constant[1]).item<double>();
  const auto add = [&](std::string name, double value) {
    found.parts.push_back({std::move(name), value});
    found.sum += value;
  };
  add("embedding", share(first_));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const LayerParts& parts = layers_[static_cast<std::size_t>(layer)];
    const std::string block = fmt::format("blocks.{}.", layer);
    if (!parts.heads.defined()) {
      add(block + (config.has_convolution(layer) ? "short convolution" : "linear attention"), share(parts.attention));
    } else if (config.post_norm && config.output_bias) {
      add(block + "attn", share(parts.attention));
      found.divided = "a norm after attention divides its heads and a bias together";
    } else {
      const at::Tensor heads =
          config.post_norm ? heads_behind_norm(parts, centred) : parts.heads * config.residual_scale;
      for (std::int64_t head = 0; head < heads.size(0); ++head)
        add(fmt::format("{}attn[head={}]", block, head), share(heads[head]));
      if (config.output_bias) add(block + "attn.bias", share(parts.attention - heads.sum(0)));
    }
    add(block + "mlp", share(parts.mlp));
  }
  if (const double constant = (output.constant[0] - output.constant[1]).item<double>(); constant != 0)
    add("output bias", constant);
  found.missed = reason_for_a_miss(found);
  return found;
}

std::string LogitPartsCollector::reason_for_a_miss(const LogitParts& found) const {
  constexpr double small = 1e-4;
  const auto differ = [](double a, double b) { return std::abs(a - b) > small; };
  if (!differ(found.sum, found.difference)) return {};
  const bool capped = model_.config().logit_soft_cap != 0;
  std::string reason;
  if (capped && differ(found.linear, found.difference))
    reason =
        fmt::format("the soft cap of the logits is not linear, and the difference before it is {:+.4f}", found.linear);
  if (differ(found.sum, found.linear) || !capped)
    reason += fmt::format("{}the model computes in {}, which rounds what it adds", reason.empty() ? "" : "; ",
                          models::dtype_name(dtype_));
  return reason;
}

}  // namespace gainlens::look
