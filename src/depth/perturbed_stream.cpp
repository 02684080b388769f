#include "depth/perturbed_stream.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::depth {
namespace {

/// The stream after each layer at the queries, [layer][query, width] in float64.
std::vector<at::Tensor> streams_of(hooks::HookedModel& model, const hooks::Tokens& tokens, const at::Tensor& queries,
                                   const Perturbation& perturbation, hooks::Hooks hooks) {
  std::vector<at::Tensor> streams;
  for (std::int64_t layer = 0; layer < perturbation.layers; ++layer) {
    hooks.observe(hooks::block_site(layer, "hook_resid_post"), [&](const hooks::Site&, const at::Tensor& hidden) {
      streams.push_back(hidden.squeeze(0).index_select(0, queries).to(at::kDouble));
    });
  }
  hooks::ForwardOptions options;
  options.stop_at_layer = perturbation.layers;
  options.allow_extrapolation = perturbation.allow_extrapolation;
  model.forward(tokens, options, hooks);
  return streams;
}

}  // namespace

std::vector<at::Tensor> carried_by_model(hooks::HookedModel& model, const hooks::Tokens& tokens,
                                         const at::Tensor& queries, const Perturbation& perturbation,
                                         at::Generator& generator) {
  const std::vector<at::Tensor> clean = streams_of(model, tokens, queries, perturbation, {});
  std::vector<at::Tensor> sums(clean.size());
  const at::Tensor deviation = perturbation.scale * perturbation.variance.sqrt();
  for (std::int64_t draw = 0; draw < perturbation.draws; ++draw) {
    hooks::Hooks hooks;
    hooks.replace(hooks::Glob(hooks::block_site(0, "hook_resid_pre").name),
                  [&](const hooks::Site&, const at::Tensor& hidden) {
                    const at::Tensor drawn = at::randn(hidden.sizes(), generator, hidden.options().dtype(at::kDouble));
                    return (hidden.to(at::kDouble) + deviation * drawn).to(hidden.scalar_type());
                  });
    const std::vector<at::Tensor> moved = streams_of(model, tokens, queries, perturbation, std::move(hooks));
    for (std::size_t layer = 0; layer < clean.size(); ++layer) {
      const at::Tensor square = (moved[layer] - clean[layer]).square().mean(0);
      sums[layer] = sums[layer].defined() ? sums[layer] + square : square;
    }
  }
  const double per_draw = perturbation.scale * perturbation.scale * static_cast<double>(perturbation.draws);
  for (at::Tensor& sum : sums) sum = sum / per_draw;
  return sums;
}

}  // namespace gainlens::depth
