#include "recommend/sasrec.h"

#include "core/check.h"
#include "kernels/gradient/packed_attention.h"
#include "kernels/gradient/trained_linear.h"
#include "kernels/gradient/trained_loss.h"
#include "kernels/linear/linear.h"
#include "models/decoder/activation.h"
#include "models/decoder/attention_ops.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::recommend {
namespace {

const hooks::Site head_norm_site{"mlm_head.ln.hook_normalized"};

std::vector<at::Tensor> linears(const at::Tensor& input, std::initializer_list<const LinearWeights*> layers) {
  std::vector<at::Tensor> weights, biases;
  for (const LinearWeights* layer : layers) {
    weights.push_back(layer->weight);
    biases.push_back(layer->bias);
  }
  if (input.scalar_type() == at::kFloat) return kernels::trained_linears(input, weights, biases);
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i < weights.size(); ++i) outputs.push_back(at::linear(input, weights[i], biases[i]));
  return outputs;
}

kernels::Activation activation_of(const SasRecConfig& config) {
  switch (config.foreign.activation) {
    case ForeignParts::Activation::gelu:
      return kernels::Activation::gelu_erf;
    case ForeignParts::Activation::relu:
      return kernels::Activation::relu;
    case ForeignParts::Activation::silu:
      return kernels::Activation::silu;
  }
  ASSERT(false, "unknown activation");
}

}  // namespace

SasRec::SasRec(const SasRecConfig& config, SasRecWeights weights)
    : PackedBackbone(config.armed_filter(), layout_of(config)), config_(config), weights_(std::move(weights)) {
  check_slots("SASRec", weights_.layers.size());
  refresh_jacobian();
}

at::Tensor SasRec::finished(const at::Tensor& hidden, const Pass& pass) const {
  const at::Tensor last =
      config_.final_norm() ? normed(hidden, weights_.final_norm, config_.norm_epsilon, final_norm_site, pass) : hidden;
  if (!config_.bidirectional) return last;
  const at::Tensor dense = models::activated(linear(last, weights_.head_dense), kernels::Activation::gelu_erf);
  return normed(dense, weights_.head_norm, config_.norm_epsilon, head_norm_site, pass);
}

at::Tensor SasRec::head() const {
  return weights_.item_embedding.narrow(0, 1, config_.items);
}

InputPart SasRec::input_part() const {
  InputPart part = input_part_of(config_, weights_);
  part.zero_padding = config_.foreign.padding == ForeignParts::Padding::zeroed;
  return part;
}

bool SasRec::serves_last_rows(const LayerStream& stream) const {
  return !stream.filter.precision.defined() || filter_.gains_from_moments();
}

void SasRec::block(std::int64_t layer, Stream& stream, const Pass& pass) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const hooks::Site first_norm = hooks::block_site(layer, "ln1.hook_normalized"),
                    second_norm = hooks::block_site(layer, "ln2.hook_normalized");
  const bool queries = config_.foreign.norm == ForeignParts::Norm::queries;
  const auto normed_by = [&](const at::Tensor& x, const NormWeights& norm, const hooks::Site& site) {
    return normed(x, norm, config_.norm_epsilon, site, pass);
  };
  const at::Tensor hidden = stream.hidden = pass.at(layer, "hook_resid_pre", stream.hidden);
  const at::Tensor asking = config_.norm_before() ? normed_by(hidden, weights.attention_norm, first_norm) : hidden;
  const at::Tensor attended = attention(layer, asking, queries ? hidden : asking, stream, pass);
  at::Tensor middle = query_rows(queries ? asking : hidden, pass.last_rows) +
                      pass.at(layer, "hook_attn_out", pass.dropped(attended, layer, output_place));
  if (stream.filter.removed.defined()) middle = middle - stream.filter.removed;
  if (!config_.norm_before()) middle = normed_by(middle, weights.attention_norm, first_norm);
  stream.hidden = middle = pass.at(layer, "hook_resid_mid", middle);
  if (queries) stream.hidden = middle = normed_by(middle, weights.mlp_norm, second_norm);
  const at::Tensor fed = fed_forward(filter_,
                                     {.layer = layer,
                                      .last = layer + 1 == config_.layers,
                                      .norm = config_.norm == NormPlace::pre ? &weights.mlp_norm : nullptr,
                                      .own_norm = weights.mlp_norm,
                                      .norm_epsilon = config_.norm_epsilon,
                                      .up = weights.up,
                                      .down = weights.down,
                                      .activation = activation_of(config_),
                                      .filter = weights.filter,
                                      .factors = factors_of(layer)},
                                     config_.heads, stream, pass);
  at::Tensor result = middle + pass.at(layer, "hook_mlp_out", pass.dropped(fed, layer, mlp_place));
  if (!config_.norm_before()) result = normed_by(result, weights.mlp_norm, second_norm);
  if (stream.items.defined()) result = result * query_rows(stream.items, pass.last_rows);
  stream.hidden = pass.at(layer, "hook_resid_post", result);
}

at::Tensor SasRec::attention(std::int64_t layer, const at::Tensor& queries, const at::Tensor& keys, Stream& stream,
                             const Pass& pass) const {
  const SasRecLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  std::vector<at::Tensor> rows;  // of queries, keys and values
  const at::Tensor asking = query_rows(queries, pass.last_rows);
  if (pass.last_rows.defined() || !queries.is_same(keys)) {
    rows = linears(keys, {&weights.key, &weights.value});
    rows.insert(rows.begin(), linear(asking, weights.query));
  } else {
    rows = linears(queries, {&weights.query, &weights.key, &weights.value});
  }
  const auto heads = [&](const at::Tensor& found, std::string_view site) {
    return pass.at(layer, site, found.view({found.size(0), config_.heads, config_.head_dim()}));
  };
  const hooks::Qkv head_inputs{heads(rows[0], "attn.hook_q"), heads(rows[1], "attn.hook_k"),
                               heads(rows[2], "attn.hook_v")};
  const at::Tensor scaled = filtered_attention(layer, asking, head_inputs, stream, pass);
  return filter_.has_output_projection() && !filter_.gains_in_stream() ? linear(scaled, weights.output) : scaled;
}

hooks::Stream SasRec::forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                              const hooks::Hooks& hooks) {
  check_ids(tokens, options, hooks);
  CHECK(options.attention == nullptr || !filter_.has_biased_scores(),
        "attention: arm {} adds biases to the scores; another attention operation cannot stand in for its own",
        name_of(filter_.arm));
  return forward_ids(tokens, options, hooks);
}

at::Tensor SasRec::unembed(const at::Tensor& normalized) {
  return id_scores(normalized, weights_.item_embedding, config_.items, head_bias());
}

at::Tensor SasRec::target_losses(const at::Tensor& normalized, const at::Tensor& targets) {
  const ScoreFactors factors = score_factors(normalized);
  return kernels::target_losses(factors.hidden, kernels::PackedWeight(factors.head), targets - 1);
}

std::vector<hooks::SiteShape> sasrec_sites(const SasRecConfig& config) {
  const bft::Filter filter = config.armed_filter();
  const auto [stream, heads, neurons, pattern, head_numbers] = site_shapes_of(config);
  std::vector<hooks::SiteShape> sites{{embed_site, stream}, {position_site, stream}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto add = [&](std::string_view rest, const std::vector<std::string>& shape, bool on_request = false) {
      sites.push_back({hooks::block_site(layer, rest), shape, on_request});
    };
    add("hook_resid_pre", stream);
    if (config.norm_before()) add("ln1.hook_normalized", stream);
    for (const char* rest : {"attn.hook_q", "attn.hook_k", "attn.hook_v"}) add(rest, heads);
    if (filter.has_gain()) add(bft::precision_site, stream);
    if (!filter.has_gain() || filter.gains_from_moments()) add("attn.hook_pattern", pattern, true);
    add("attn.hook_z", heads);
    if (filter.has_gain()) add(bft::observation_site, heads);
    if (filter.parts().factor != bft::AttentionFactor::one) add(bft::gain_site, heads);
    add("hook_attn_out", stream);
    if (!config.norm_before()) add("ln1.hook_normalized", stream);
    add("hook_resid_mid", stream);
    if (config.norm_before()) add("ln2.hook_normalized", stream);
    add("mlp.hook_pre", neurons);
    if (filter.has_jacobian() && layer + 1 < config.layers) add(bft::stretch_site, stream);
    add("mlp.hook_post", neurons);
    add("hook_mlp_out", stream);
    if (!config.norm_before()) add("ln2.hook_normalized", stream);
    add("hook_resid_post", stream);
  }
  if (config.final_norm()) sites.push_back({final_norm_site, stream});
  if (config.bidirectional) sites.push_back({head_norm_site, stream});
  sites.push_back({hooks::logits_site(), {"batch", "position", std::to_string(config.ids())}, true});
  return sites;
}

std::vector<hooks::SiteShape> SasRec::sites() const {
  return sasrec_sites(config_);
}

}  // namespace gainlens::recommend
