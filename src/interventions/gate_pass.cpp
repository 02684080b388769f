#include "interventions/gate_pass.h"

#include "core/check.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::interventions {
namespace {

constexpr kernels::ReturnedFields wanted_fields() {
  kernels::ReturnedFields fields = kernels::moments_alone;
  fields.output = true;
  fields.per_dimension = true;
  fields.first_masses = 1;
  return fields;
}

/// [1, query, head, ..] as [head, query, ..], G = 1 where a head has one number.
at::Tensor by_head(const at::Tensor& tensor) {
  const at::Tensor heads = tensor.squeeze(0).transpose(0, 1);
  return heads.dim() == 2 ? heads.unsqueeze(2) : heads;
}

class Pass {
 public:
  Pass(models::Decoder& model, bool writes, const AtGate& at_gate)
      : gate_(model.config().gate),
        at_gate_(at_gate),
        statistics_([this](std::int64_t layer, kernels::QueryStatistics&& found) { see(layer, std::move(found)); },
                    kernels::AttentionBackend::automatic, wanted_fields()) {
    const bool gated = gate_ != models::Gate::none;
    for (const std::int64_t layer : softmax_layers(model.config())) {
      const hooks::Site result = hooks::block_site(layer, "attn.hook_z"),
                        gate = hooks::block_site(layer, "attn.hook_gate");
      if (gated) hooks_.observe(result, [this](const hooks::Site&, const at::Tensor& z) { site_.result = by_head(z); });
      const hooks::Site& place = gated ? gate : result;
      if (writes) {
        hooks_.replace(hooks::Glob(place.name),
                       [this](const hooks::Site&, const at::Tensor& native) { return written(native); });
      } else {
        hooks_.observe(place, [this](const hooks::Site&, const at::Tensor& native) {
          ASSERT(!made_at(native).defined(), "a pass that only sees is given a gate to write");
        });
      }
    }
  }
  Pass(const Pass&) = delete;  // the hooks hold its address
  Pass& operator=(const Pass&) = delete;

  hooks::ForwardRequest request(const hooks::Tokens& tokens) {
    hooks::ForwardRequest request{&tokens, {}, &hooks_};
    request.options.attention = &statistics_;
    request.options.allow_extrapolation = true;
    return request;
  }

 private:
  void see(std::int64_t layer, kernels::QueryStatistics&& found) {
    const at::Tensor& precision = found.observation_precision_by_dimension;
    if (!at::isfinite(precision).logical_and(precision > 0).all().item<bool>())
      throw_run_failed("layer {}: lambda_obs is not a number above 0 at some query", layer);
    site_ = {layer, std::move(found), {}, {}};
  }

  /// What the caller puts at the gate, or in place of attention's result.
  at::Tensor made_at(const at::Tensor& native) {
    if (gate_ == models::Gate::none) {
      site_.result = by_head(native);
    } else {
      site_.gate = by_head(native).to(at::kDouble);
    }
    return at_gate_(site_);
  }

  at::Tensor written(const at::Tensor& native) {
    const at::Tensor made = made_at(native);
    if (!made.defined()) return native;
    at::Tensor values = made.transpose(0, 1).unsqueeze(0);  // [1, query, head, G]
    if (gate_ == models::Gate::headwise) values = values.squeeze(3);
    if (gate_ == models::Gate::none) values = values * native.to(at::kDouble);
    return values.to(native.scalar_type()).contiguous();
  }

  models::Gate gate_;
  const AtGate& at_gate_;
  GateSite site_;  // of the layer that runs
  models::StatisticsAttention statistics_;
  hooks::Hooks hooks_;
};

}  // namespace

std::vector<std::int64_t> softmax_layers(const models::DecoderConfig& config) {
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    if (config.attends(layer)) layers.push_back(layer);
  return layers;
}

at::Tensor run_gate_pass(models::Decoder& model, const std::vector<std::int32_t>& tokens, bool writes,
                         const AtGate& at_gate) {
  const hooks::Tokens ids = sweep::one_sequence(tokens);
  Pass pass(model, writes, at_gate);
  const hooks::ForwardRequest request = pass.request(ids);
  return model.forward(*request.tokens, request.options, *request.hooks).hidden;
}

}  // namespace gainlens::interventions
