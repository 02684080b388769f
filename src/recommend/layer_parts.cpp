#include "recommend/layer_parts.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/quantity.h"
#include "kernels/gradient/layer_gradients.h"
#include "kernels/gradient/selected_rows.h"
#include "kernels/gradient/trained_linear.h"
#include "models/decoder/activation.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace gainlens::recommend {
namespace {

bool is_pattern(const hooks::Site& site) {
  return site.name.ends_with(".attn.hook_pattern");
}

/// Whether the precision after a layer needs the slopes of its activation.
bool needs_slopes(const bft::Filter& filter, const MlpPart& part, const LayerStream& stream, const PackedPass& pass) {
  const bool takes_mean = filter.has_running_jacobian() && !pass.training;
  return stream.filter.precision.defined() && filter.has_jacobian() && !takes_mean && !part.last;
}

/// @param slopes  [row, neuron] of the activation
at::Tensor jacobian(const bft::Filter& filter, const MlpPart& part, const at::Tensor& hidden,
                    const at::Tensor& slopes) {
  if (part.factors != nullptr) return bft::jacobian(*part.factors, slopes);
  if (!filter.options.norm_jacobian) return bft::jacobian(part.up.weight, part.down.weight, slopes);
  const at::Tensor deviation = (hidden.var(-1, /*unbiased=*/false, /*keepdim=*/true) + part.norm_epsilon).sqrt();
  const at::Tensor normalised = (hidden - hidden.mean(-1, /*keepdim=*/true)) / deviation;
  return bft::jacobian_with_norm(part.up.weight, part.down.weight, slopes, normalised, deviation, part.own_norm.weight);
}

/// @param items  int64 [position], ids from 1
bft::PriorPrecision prior_precision(const bft::Filter& filter, const InputPart& part, const at::Tensor& items) {
  const bool content = filter.options.initial_precision == bft::InitialPrecision::content;
  return bft::prior_precision(filter.options, part.precision, items,
                              content ? kernels::selected_rows(part.item_embedding, items) : at::Tensor());
}

}  // namespace

at::Tensor linear(const at::Tensor& input, const LinearWeights& weights) {
  return input.scalar_type() == at::kFloat ? kernels::trained_linear(input, weights.weight, weights.bias)
                                           : at::linear(input, weights.weight, weights.bias);
}

at::Tensor normed(const at::Tensor& x, const NormWeights& weights, double epsilon, const hooks::Site& site,
                  const PackedPass& pass) {
  if (!pass.shows(site)) return models::norm(x, models::Norm::layer, epsilon, weights.weight, 0, weights.bias);
  return models::norm_with_site(x, models::Norm::layer, epsilon, weights.weight, 0, weights.bias,
                                pass.hooks.replaces(site), [&](const at::Tensor& seen) { return pass.at(site, seen); });
}

LayerStream first_stream(const bft::Filter& filter, const InputPart& part, const at::Tensor& items,
                         const at::Tensor& places, std::int64_t layers, const PackedPass& pass) {
  at::Tensor item_rows = kernels::selected_rows(part.item_embedding, items);
  if (part.factor != 1) item_rows = item_rows * part.factor;
  item_rows = pass.at(embed_site, item_rows);
  at::Tensor hidden = item_rows + pass.at(position_site, kernels::selected_rows(part.position_embedding, places));
  if (part.norm != nullptr)
    hidden = models::norm(hidden, models::Norm::layer, part.norm_epsilon, part.norm->weight, 0, part.norm->bias);
  at::Tensor is_item;
  if (part.zero_padding) {
    is_item = items.gt(0).to(hidden.scalar_type()).unsqueeze(1);
    hidden = hidden * is_item;
  }
  const at::Tensor& strength = part.precision.strength;
  const double share = strength.defined() ? strength.item<double>() : 1;
  if (share == 0) bft::refuse_idle_interventions(filter, pass.hooks, layers);
  const bool acts = filter.has_initial_precision() && share > 0;
  const bft::PriorPrecision prior = acts ? prior_precision(filter, part, items) : bft::PriorPrecision();
  LayerStream stream{pass.dropped(hidden, 0, embedding_place),
                     bft::first_state(filter, prior, part.precision.range, share, hidden.size(1)), is_item};
  stream.filter.fused = true;
  stream.filter.stretch_sums = pass.stretch_sums;
  return stream;
}

at::Tensor fed_forward(const bft::Filter& filter, const MlpPart& part, std::int64_t heads, LayerStream& stream,
                       const PackedPass& pass) {
  const at::Tensor middle = stream.hidden;
  const hooks::Site norm_site = hooks::block_site(part.layer, "ln2.hook_normalized");
  const at::Tensor input =
      part.norm != nullptr ? normed(middle, *part.norm, part.norm_epsilon, norm_site, pass) : middle;
  const at::Tensor before = pass.at(part.layer, "mlp.hook_pre", linear(input, part.up));
  at::Tensor neurons, slopes;
  if (!needs_slopes(filter, part, stream, pass)) {
    neurons = models::activated(before, part.activation);
  } else if (before.is_cpu() && before.scalar_type() == at::kFloat) {
    std::tie(neurons, slopes) = kernels::trained_activation_with_slope(before, kernels::Activation::gelu_erf);
  } else {
    neurons = models::activated(before, kernels::Activation::gelu_erf);
    slopes = bft::activation_slope(before, kernels::Activation::gelu_erf);
  }
  if (stream.filter.precision.defined() && !part.last) {
    const LayerSites sites(pass, part.layer);
    bft::FilterPass step(filter, part.filter, sites, stream.filter, {heads, middle.size(1) / heads});
    step.predict(slopes.defined() ? jacobian(filter, part, middle, slopes) : at::Tensor());
  }
  return linear(pass.at(part.layer, "mlp.hook_post", neurons), part.down);
}

std::vector<bft::JacobianFactors> jacobian_factors(const bft::Filter& filter,
                                                   const std::vector<const LinearWeights*>& up,
                                                   const std::vector<const LinearWeights*>& down) {
  std::vector<bft::JacobianFactors> factors;
  if (!filter.has_jacobian() || filter.options.jacobian != bft::JacobianForm::low_rank) return factors;
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < up.size(); ++i)
    factors.push_back(bft::jacobian_factors(up[i]->weight, down[i]->weight, filter.options.jacobian_rank));
  return factors;
}

std::vector<double> kept_energy(const std::vector<bft::JacobianFactors>& factors) {
  std::vector<double> kept;
  kept.reserve(factors.size());
  for (const bft::JacobianFactors& layer_factors : factors) kept.push_back(layer_factors.kept);
  return kept;
}

at::Tensor id_scores(const at::Tensor& normalized, const at::Tensor& embedding, std::int64_t items,
                     const at::Tensor& bias) {
  at::Tensor logits = at::linear(normalized, embedding);
  const std::int64_t after = embedding.size(0) - items - 1;
  if (bias.defined()) logits = logits + at::constant_pad_nd(bias, {1, after});
  constexpr double impossible = -std::numeric_limits<double>::infinity();
  logits.select(-1, 0).fill_(impossible);
  logits.narrow(-1, items + 1, after).fill_(impossible);
  return logits;
}

void check_packed_hooks(const hooks::Hooks& hooks, const std::vector<hooks::SiteShape>& sites) {
  std::vector<hooks::SiteShape> served;
  for (const hooks::SiteShape& site : sites) {
    const bool whole = is_pattern(site.site) || site.site == hooks::logits_site();
    CHECK(!whole || !hooks.replaces(site.site), "hook {}: does not exist for packed histories", site.site.name);
    if (!whole) served.push_back(site);
  }
  hooks.check_served_by(served);
}

void check_id_request(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks,
                      const IdReader& model) {
  const at::Tensor& ids = tokens.ids;
  CHECK(ids.defined() && ids.dim() == 2 && ids.scalar_type() == at::kLong && ids.numel() > 0,
        "items: ids must be int64 [batch, position], at least one");
  const std::int64_t positions = ids.size(1), last = std::max(model.items, model.mask);
  CHECK(positions <= model.positions, "items: {} positions; the model was made for {} at most", positions,
        model.positions);
  const auto [least, most] = ids.aminmax();
  CHECK(least.item<std::int64_t>() >= 1 && most.item<std::int64_t>() <= last,
        "items: ids from {} to {}; the catalogue has 1 to {}{}", least.item<std::int64_t>(), most.item<std::int64_t>(),
        model.items, model.mask != 0 ? fmt::format(", and {} is the mask", model.mask) : "");
  CHECK(options.stop_at_layer >= -1 && options.stop_at_layer <= model.layers,
        "stop_at_layer: {}; it must be 0 to {}, or -1 for all layers", options.stop_at_layer, model.layers);
  hooks.check_served_by(model.sites);
  std::uint64_t bytes = c10::elementSize(model.dtype);
  for (const std::int64_t size : {ids.size(0), model.heads, positions, positions})
    bytes = checked_mul(bytes, static_cast<std::uint64_t>(size), "size of hook_pattern");
  for (std::int64_t layer = 0; layer < model.layers && bytes > options.pattern_memory_bytes; ++layer) {
    CHECK(!hooks.wants(hooks::block_site(layer, "attn.hook_pattern")),
          "hook blocks.{}.attn.hook_pattern: needs {}; "
          "the bound is {}",
          layer, format_bytes(bytes), format_bytes(options.pattern_memory_bytes));
  }
  if (options.stop_at_layer < 0) hooks::check_logits_hooks({&tokens, options, &hooks}, last + 1, model.dtype);
}

at::Tensor places_of(const at::Tensor& ids, std::int64_t positions, Alignment alignment) {
  const std::int64_t first = alignment == Alignment::end ? positions - ids.size(1) : 0;
  return at::arange(first, first + ids.size(1), ids.options()).repeat({ids.size(0)});
}

kernels::PackedBounds equal_bounds(std::int64_t batch, std::int64_t positions) {
  kernels::PackedBounds bounds;
  bounds.reserve(static_cast<std::size_t>(batch) + 1);
  for (std::int64_t i = 0; i <= batch; ++i) bounds.push_back(i * positions);
  return bounds;
}

}  // namespace gainlens::recommend
