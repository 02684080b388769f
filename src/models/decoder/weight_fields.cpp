#include "models/decoder/weight_fields.h"

#include "bft/filter_slots.h"

#include <algorithm>
#include <utility>

namespace gainlens::models {
namespace {

using Kind = WeightField::Kind;
using Shape = std::vector<std::int64_t>;

/// Collects the fields of one layer.
class FieldList {
 public:
  void add(std::string_view name, Kind kind, Shape shape, bool wanted) {
    fields_.push_back({name, kind, std::move(shape), wanted});
  }
  void norm(std::string_view name, std::int64_t width, bool wanted) { add(name, Kind::norm, {width}, wanted); }
  /// A projection [.., out, in] with its bias [.., out].
  void linear(std::string_view name, std::string_view bias_name, Shape shape, bool wanted, bool biased) {
    Shape bias_shape(shape.begin(), shape.end() - 1);
    add(name, Kind::projection, std::move(shape), wanted);
    add(bias_name, Kind::bias, std::move(bias_shape), wanted && biased);
  }
  void filter(std::string_view name, Kind kind, Shape shape, std::optional<double> start) {
    fields_.push_back({name, kind, std::move(shape), /*wanted=*/true, start});
  }
  std::vector<WeightField> take() { return std::move(fields_); }

 private:
  std::vector<WeightField> fields_;
};

void add_delta(const DecoderConfig& config, bool wanted, FieldList& list) {
  const DeltaLayers& of = config.delta;
  const auto projection = [&](std::string_view name, std::int64_t rows) {
    list.add(name, Kind::projection, {rows, config.width}, wanted);
  };
  projection("delta_query", of.keys());
  projection("delta_key", of.keys());
  projection("delta_value", of.values());
  projection("delta_gate", of.values());
  projection("delta_beta", of.value_heads);
  projection("delta_decay", of.value_heads);
  list.add("delta_convolution", Kind::convolution, {2 * of.keys() + of.values(), 1, of.kernel}, wanted);
  list.add("delta_log_rate", Kind::logit, {of.value_heads}, wanted);
  list.add("delta_decay_bias", Kind::bias, {of.value_heads}, wanted);
  list.norm("delta_norm", of.value_dim, wanted);
  list.add("delta_output", Kind::projection, {config.width, of.values()}, wanted);
}

void add_convolution(const DecoderConfig& config, bool wanted, FieldList& list) {
  const ConvolutionLayers& of = config.convolution;
  const Shape square{config.width, config.width};
  list.linear("convolution_gate", "convolution_gate_bias", square, wanted, of.bias);
  list.linear("convolution_output_gate", "convolution_output_gate_bias", square, wanted, of.bias);
  list.linear("convolution_input", "convolution_input_bias", square, wanted, of.bias);
  list.add("convolution", Kind::convolution, {config.width, 1, of.kernel}, wanted);
  list.add("convolution_bias", Kind::bias, {config.width}, wanted && of.bias);
  list.linear("convolution_output", "convolution_output_bias", square, wanted, of.bias);
}

void add_latent(const DecoderConfig& config, bool wanted, FieldList& list) {
  const LatentAttention& of = config.latent;
  const bool query = wanted && of.query_rank > 0;
  list.linear("query_latent", "query_latent_bias", {of.query_rank, config.width}, query, config.qkv_bias);
  list.norm("query_latent_norm", of.query_rank, query);
  list.linear("key_latent", "key_latent_bias", {of.key_rank, config.width}, wanted, config.qkv_bias);
  list.linear("key_rotated", "key_rotated_bias", {of.rotated, config.width}, wanted, config.qkv_bias);
  list.norm("key_latent_norm", of.key_rank, wanted);
}

/// Numbers of the rows from which queries, and keys with values, are projected.
std::int64_t query_inputs(const DecoderConfig& config) {
  return config.latent.query_rank > 0 ? config.latent.query_rank : config.width;
}
std::int64_t key_inputs(const DecoderConfig& config) {
  return config.has_latent() ? config.latent.key_rank : config.width;
}

/// Adds the fields of attention. Of a layer without softmax attention only the norms are wanted.
void add_attention(const DecoderConfig& config, std::int64_t layer, FieldList& list) {
  const bool attends = config.attends(layer);
  const std::int64_t kv_heads = config.kv_heads_of(layer);
  const std::int64_t queries = config.heads * config.head_dim, outputs = config.heads * config.value_dim();
  const std::int64_t keys = kv_heads * (config.head_dim - (config.has_latent() ? config.latent.rotated : 0));
  const bool biased = config.qkv_bias && !config.has_latent();
  list.norm("attention_norm", config.width, config.pre_norm);
  list.add("attention_norm_bias", Kind::bias, {config.width}, config.pre_norm && config.norm_bias);
  add_latent(config, attends && config.has_latent(), list);
  list.linear("query", "query_bias", {queries, query_inputs(config)}, attends, biased);
  list.linear("gate_score", "gate_score_bias", {config.gate == Gate::headwise ? config.heads : outputs, config.width},
              attends && config.gate != Gate::none, biased);
  list.linear("key", "key_bias", {keys, key_inputs(config)}, attends, biased);
  list.linear("value", "value_bias", {kv_heads * config.value_dim(), key_inputs(config)}, attends, biased);
  const auto normed = [&](std::int64_t heads) {
    return config.qk_norm == QkNorm::whole   ? Shape{heads * config.head_dim}
           : config.qk_norm == QkNorm::heads ? Shape{heads, config.head_dim}
                                             : Shape{config.head_dim};
  };
  list.add("query_norm", Kind::norm, normed(config.heads), attends && config.qk_norm != QkNorm::none);
  list.add("key_norm", Kind::norm, normed(kv_heads), attends && config.qk_norm != QkNorm::none);
  list.add("sink_logit", Kind::logit, {config.heads}, attends && config.has_sink_logits(layer));
  list.linear("output", "output_bias", {config.width, outputs}, attends, config.output_bias);
  list.norm("attention_post_norm", config.width, config.post_norm);
}

void add_mlp(const DecoderConfig& config, bool experts, FieldList& list) {
  const bool own_norm = config.pre_norm && !config.shared_norm;
  list.norm("mlp_norm", config.width, own_norm);
  list.add("mlp_norm_bias", Kind::bias, {config.width}, own_norm && config.norm_bias);
  const Shape in{config.mlp_width, config.width};
  list.linear("mlp_gate", "mlp_gate_bias", in, !experts && config.gated_mlp, config.mlp_bias);
  list.linear("mlp_up", "mlp_up_bias", in, !experts, config.mlp_bias);
  list.linear("mlp_down", "mlp_down_bias", {config.width, config.mlp_width}, !experts, config.mlp_bias);
  const Experts& of = config.experts;
  const Shape expert_in{of.count, of.width, config.width};
  list.linear("router", "router_bias", {of.count, config.width}, experts, of.router_bias);
  list.add("router_correction", Kind::correction, {of.count}, experts && of.router_correction);
  list.linear("expert_gate", "expert_gate_bias", expert_in, experts, of.bias);
  list.linear("expert_up", "expert_up_bias", expert_in, experts, of.bias);
  list.linear("expert_down", "expert_down_bias", {of.count, config.width, of.width}, experts, of.bias);
  const bool shared = experts && of.shared_width > 0;
  const Shape shared_in{of.shared_width, config.width};
  list.linear("shared_gate", "shared_gate_bias", shared_in, shared, of.bias);
  list.linear("shared_up", "shared_up_bias", shared_in, shared, of.bias);
  list.linear("shared_down", "shared_down_bias", {config.width, of.shared_width}, shared, of.bias);
  list.add("shared_score", Kind::projection, {1, config.width}, shared && of.shared_score);
  list.norm("mlp_post_norm", config.width, config.post_norm);
}

/// The slots of a filter as fields.
void add_slots(const std::vector<bft::FilterSlot>& slots, FieldList& list) {
  for (const bft::FilterSlot& slot : slots) {
    const Kind kind = slot.role == bft::WeightRole::weight      ? Kind::filter
                      : slot.role == bft::WeightRole::precision ? Kind::precision
                                                                : Kind::constant;
    list.filter(slot.name, kind, slot.shape, slot.start);
  }
}

}  // namespace

std::vector<bft::FilterSlot> filter_slots(const DecoderConfig& config, std::int64_t layer) {
  const bft::Filter filter = config.armed_filter();
  const std::int64_t estimate = filter.gains_in_stream() ? config.width : config.heads * config.head_dim;
  return bft::filter_slots(filter, config.width, config.heads, estimate, /*predicts=*/layer + 1 < config.layers);
}

std::vector<bft::FilterSlot> token_precision_slots(const DecoderConfig& config) {
  std::vector<bft::FilterSlot> slots =
      bft::initial_precision_slots(config.armed_filter(), config.width, config.vocabulary, /*counted=*/false);
  // Checkpoints and states of trainings have the network first.
  std::stable_partition(slots.begin(), slots.end(),
                        [](const bft::FilterSlot& slot) { return slot.name.starts_with("precision.network."); });
  return slots;
}

std::vector<WeightField> layer_fields(const DecoderConfig& config, std::int64_t layer) {
  FieldList list;
  add_attention(config, layer, list);
  add_delta(config, config.has_delta(layer), list);
  add_convolution(config, config.has_convolution(layer), list);
  add_mlp(config, config.has_experts(layer), list);
  add_slots(filter_slots(config, layer), list);
  return list.take();
}

std::vector<WeightField> outer_fields(const DecoderConfig& config) {
  FieldList list;
  list.add("embedding", Kind::embedding, {config.vocabulary, config.width}, /*wanted=*/true);
  list.add("position_embedding", Kind::embedding, {config.position_offset + config.max_positions, config.width},
           config.positions == Positions::learned);
  list.norm("embedding_norm", config.width, config.embedding_norm);
  list.add("embedding_norm_bias", Kind::bias, {config.width}, config.embedding_norm && config.norm_bias);
  add_slots(token_precision_slots(config), list);
  list.norm("final_norm", config.width, true);
  list.add("final_norm_bias", Kind::bias, {config.width}, config.norm_bias);
  list.add("head", Kind::projection, {config.vocabulary, config.width}, !config.tied_head);
  list.add("head_bias", Kind::bias, {config.vocabulary}, config.head_bias);
  return list.take();
}

}  // namespace gainlens::models
