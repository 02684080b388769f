#include "models/checkpoint/tensor_slots.h"

#include "core/check.h"
#include "models/decoder/rope_frequencies.h"

#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <span>
#include <utility>

namespace gainlens::models {
namespace {

/// Builds the slots of one checkpoint from the fields that its configuration asks for.
class SlotList {
 public:
  SlotList(const DecoderConfig& config, const TensorNames& names, const std::vector<WeightField>& fields,
           std::string at, std::int64_t layer = -1)
      : config_(config), names_(names), at_(std::move(at)), layer_(layer) {
    for (const WeightField& field : fields) fields_.emplace(field.name, field);
  }

  /// Adds a tensor under its complete name.
  void complete(std::string name, std::string_view field) {
    if (const WeightField* found = wanted(field))
      slots_.push_back(
          {std::move(name), found->shape, {{found->name, found->shape, found->kind, -1, 0, found->start}}});
  }
  void norm(std::string_view module, std::string_view field) {
    complete(fmt::format("{}{}.weight", at_, module), field);
  }
  /// A weight with its bias.
  void norm(std::string_view module, std::string_view field, std::string_view bias) {
    norm(module, field);
    complete(fmt::format("{}{}.bias", at_, module), bias);
  }
  /// Adds projections that share one stored tensor. Their biases share another one.
  void linear(std::string_view module, std::initializer_list<std::string_view> fields, RowOrder order,
              bool rotary = false, std::int64_t groups = 0) {
    if (groups == 0) groups = kv_heads();
    std::vector<std::string> biases;
    for (const std::string_view field : fields) biases.push_back(std::string(field) + "_bias");
    add_rows(fmt::format("{}{}.weight", at_, module), {fields.begin(), fields.end()}, order, names_.transposed, rotary,
             groups);
    add_rows(fmt::format("{}{}.bias", at_, module), {biases.begin(), biases.end()}, order,
             /*transposed=*/false, rotary, groups);
  }
  void attention();
  void latent();
  void delta();
  void convolution();
  void mlp();
  void experts();
  void filter();

  std::vector<TensorSlot> take() {
    for (TensorSlot& slot : slots_) slot.layer = layer_;
    return std::move(slots_);
  }

 private:
  /// The KV heads of the layer; outside the layers no tensor depends on it.
  std::int64_t kv_heads() const { return layer_ < 0 ? config_.kv_heads : config_.kv_heads_of(layer_); }

  const WeightField* wanted(std::string_view name) const {
    const auto found = fields_.find(name);
    ASSERT(found != fields_.end(), "no weight is called {}", name);
    return found->second.wanted ? &found->second : nullptr;
  }

  void add_rows(std::string name, const std::vector<std::string_view>& fields, RowOrder order, bool transposed,
                bool rotary, std::int64_t groups) {
    TensorSlot slot{.name = std::move(name), .order = order, .groups = groups, .transposed = transposed};
    for (const std::string_view field : fields) {
      const WeightField* found = wanted(field);
      if (found == nullptr) continue;
      slot.parts.push_back({found->name, found->shape, found->kind});
      if (!rotary) continue;
      slot.rotary_heads = found->shape[0] / config_.head_dim;
      slot.rotary_dimensions = rotated_dimensions(config_.rope, config_.head_dim);
    }
    if (slot.parts.empty()) return;
    finish(std::move(slot));
  }

  /// Marks the slots from `first` on, if the checkpoint stores rotated rows pair by pair: those at the end of each of
  /// `heads` equal parts.
  void pair_at_end(std::size_t first, std::int64_t heads) {
    if (!names_.rotary_pairs) return;
    for (TensorSlot& slot : std::span(slots_).subspan(first)) {
      slot.rotary_heads = heads;
      slot.rotary_dimensions = config_.latent.rotated;
      slot.rotary_at_end = true;
    }
  }

  /// Computes the stored shape from the parts of the slot, and adds the slot.
  void finish(TensorSlot slot) {
    slot.shape = slot.parts.front().shape;
    auto& rows = slot.shape[static_cast<std::size_t>(slot.row_dimension)];
    for (std::size_t part = 1; part < slot.parts.size(); ++part)
      rows += slot.parts[part].shape[static_cast<std::size_t>(slot.row_dimension)];
    if (slot.stacked_heads > 0) {
      rows /= slot.stacked_heads;
      slot.shape.insert(slot.shape.begin(), slot.stacked_heads);
    }
    if (slot.transposed) std::swap(slot.shape.end()[-1], slot.shape.end()[-2]);
    slots_.push_back(std::move(slot));
  }

  void head_norms(std::string_view name, std::string_view field);
  void stack_of_heads(std::string_view module, std::string_view field, bool transposed);
  void expert_linear(std::string_view module, std::string_view field);
  void delta_rows(std::string_view module, std::initializer_list<std::string_view> fields, RowOrder order);
  void tile(std::int64_t dimension = 0, std::int64_t begin = 0);
  void expert_stack(std::string_view name, std::initializer_list<std::string_view> fields, bool transposed);

  const DecoderConfig& config_;
  const TensorNames& names_;
  std::string at_;  // prefix of the names
  std::int64_t layer_;
  std::map<std::string_view, WeightField> fields_;
  std::vector<TensorSlot> slots_;
};

void SlotList::latent() {
  linear(names_.query_latent, {"query_latent"}, RowOrder::sequential);
  norm(names_.query_latent_norm, "query_latent_norm");
  std::size_t first = slots_.size();
  linear(config_.latent.query_rank > 0 ? names_.query_of_latent : names_.query, {"query"}, RowOrder::sequential);
  pair_at_end(first, config_.heads);
  first = slots_.size();
  linear(names_.key_latent, {"key_latent", "key_rotated"}, RowOrder::sequential);
  pair_at_end(first, 1);
  norm(names_.key_latent_norm, "key_latent_norm");
  if (!names_.key_value_of_latent.empty()) {
    linear(names_.key_value_of_latent, {"key", "value"}, RowOrder::grouped, /*rotary=*/false, config_.heads);
    return;
  }
  stack_of_heads(names_.key_of_latent, "key", /*transposed=*/true);
  stack_of_heads(names_.value_of_latent, "value", /*transposed=*/false);
}

/// A projection without bias that is stored as a stack of those of the heads.
void SlotList::stack_of_heads(std::string_view module, std::string_view field, bool transposed) {
  const WeightField* found = wanted(field);
  if (found == nullptr) return;
  TensorSlot slot{.name = fmt::format("{}{}.weight", at_, module), .transposed = transposed};
  slot.parts.push_back({found->name, found->shape, found->kind});
  slot.stacked_heads = config_.heads;
  finish(std::move(slot));
}

void SlotList::attention() {
  norm(names_.attention_norm, "attention_norm", "attention_norm_bias");
  if (wanted("key_latent") != nullptr) {
    latent();
  } else if (names_.query_key_value.empty()) {
    if (names_.gate_score.empty()) {
      linear(names_.query, {"query", "gate_score"}, RowOrder::grouped, names_.rotary_pairs,
             names_.gate_by_head ? config_.heads : kv_heads());
    } else {
      linear(names_.query, {"query"}, RowOrder::sequential, names_.rotary_pairs);
      linear(names_.gate_score, {"gate_score"}, RowOrder::sequential);
    }
    linear(names_.key, {"key"}, RowOrder::sequential, names_.rotary_pairs);
    linear(names_.value, {"value"}, RowOrder::sequential);
  } else {
    linear(names_.query_key_value, {"query", "key", "value"}, names_.query_key_value_order);
  }
  if (names_.query_norm_of_head.empty()) {
    complete(fmt::format("{}{}.weight", at_, names_.query_norm), "query_norm");
    complete(fmt::format("{}{}.weight", at_, names_.key_norm), "key_norm");
  } else {
    head_norms(names_.query_norm_of_head, "query_norm");
    head_norms(names_.key_norm_of_head, "key_norm");
  }
  complete(at_ + std::string(names_.sink_logit), "sink_logit");
  linear(names_.output, {"output"}, RowOrder::sequential);
  complete(fmt::format("{}{}.weight", at_, names_.attention_post_norm), "attention_post_norm");
}

/// Projections without biases that share one stored tensor.
void SlotList::delta_rows(std::string_view module, std::initializer_list<std::string_view> fields, RowOrder order) {
  add_rows(fmt::format("{}{}.weight", at_, module), {fields.begin(), fields.end()}, order, /*transposed=*/false,
           /*rotary=*/false, config_.delta.key_heads);
}

/// Marks the last slot, if the checkpoint stores value heads in turns.
void SlotList::tile(std::int64_t dimension, std::int64_t begin) {
  const DeltaLayers& of = config_.delta;
  if (names_.delta_heads_tiled)
    slots_.back().tiled = TiledHeads{dimension, begin, of.key_heads, of.value_heads / of.key_heads};
}

void SlotList::delta() {
  if (wanted("delta_query") == nullptr) return;
  const std::int64_t keys = 2 * config_.delta.keys();  // rows of queries and keys
  if (!names_.delta_projections.empty()) {
    delta_rows(names_.delta_projections, {"delta_query", "delta_key", "delta_value", "delta_gate"}, RowOrder::grouped);
  } else {
    delta_rows(names_.delta_query_key_value, {"delta_query", "delta_key", "delta_value"}, RowOrder::sequential);
    tile(0, keys);
    delta_rows(names_.delta_gate, {"delta_gate"}, RowOrder::sequential);
    tile();
  }
  if (!names_.delta_rates.empty()) {
    delta_rows(names_.delta_rates, {"delta_beta", "delta_decay"}, RowOrder::grouped);
  } else {
    delta_rows(names_.delta_beta, {"delta_beta"}, RowOrder::sequential);
    tile();
    delta_rows(names_.delta_decay, {"delta_decay"}, RowOrder::sequential);
    tile();
  }
  complete(fmt::format("{}{}.weight", at_, names_.delta_convolution), "delta_convolution");
  tile(0, keys);
  complete(at_ + std::string(names_.delta_log_rate), "delta_log_rate");
  tile();
  slots_.back().exponential = names_.delta_rate_exponential;
  complete(at_ + std::string(names_.delta_decay_bias), "delta_decay_bias");
  tile();
  complete(fmt::format("{}{}.weight", at_, names_.delta_norm), "delta_norm");
  delta_rows(names_.delta_output, {"delta_output"}, RowOrder::sequential);
  tile(1);
}

void SlotList::convolution() {
  linear(names_.convolution_projection, {"convolution_gate", "convolution_output_gate", "convolution_input"},
         RowOrder::sequential);
  norm(names_.convolution, "convolution", "convolution_bias");
  linear(names_.convolution_output, {"convolution_output"}, RowOrder::sequential);
}

void SlotList::filter() {
  for (const bft::FilterSlot& slot : filter_slots(config_, layer_))
    complete(fmt::format("{}filter.{}", at_, slot.name), slot.name);
}

void SlotList::mlp() {
  norm(names_.mlp_norm, "mlp_norm", "mlp_norm_bias");
  if (names_.mlp_gate_up.empty()) {
    linear(names_.mlp_gate, {"mlp_gate"}, RowOrder::sequential);
    linear(names_.mlp_up, {"mlp_up"}, RowOrder::sequential);
  } else {
    linear(names_.mlp_gate_up, {"mlp_gate", "mlp_up"}, RowOrder::sequential);
  }
  linear(names_.mlp_down, {"mlp_down"}, RowOrder::sequential);
  experts();
  complete(fmt::format("{}{}.weight", at_, names_.mlp_post_norm), "mlp_post_norm");
}

void SlotList::experts() {
  linear(names_.router, {"router"}, RowOrder::sequential);
  complete(at_ + std::string(names_.router_correction), "router_correction");
  if (names_.expert_gate_up.empty()) {
    expert_linear(names_.expert_gate, "expert_gate");
    expert_linear(names_.expert_up, "expert_up");
    expert_linear(names_.expert_down, "expert_down");
  } else {
    const bool transposed = !names_.expert_stacks_by_output;
    expert_stack(names_.expert_gate_up, {"expert_gate", "expert_up"}, transposed);
    expert_stack(names_.expert_gate_up_bias, {"expert_gate_bias", "expert_up_bias"}, /*transposed=*/false);
    expert_stack(names_.expert_down_stack, {"expert_down"}, transposed);
    expert_stack(names_.expert_down_bias, {"expert_down_bias"}, /*transposed=*/false);
  }
  if (names_.shared_gate_up.empty()) {
    linear(names_.shared_gate, {"shared_gate"}, RowOrder::sequential);
    linear(names_.shared_up, {"shared_up"}, RowOrder::sequential);
  } else {
    linear(names_.shared_gate_up, {"shared_gate", "shared_up"}, RowOrder::sequential);
  }
  linear(names_.shared_down, {"shared_down"}, RowOrder::sequential);
  complete(fmt::format("{}{}.weight", at_, names_.shared_score), "shared_score");
}

/// A norm whose rows are stored head by head.
void SlotList::head_norms(std::string_view name, std::string_view field) {
  const WeightField* found = wanted(field);
  if (found == nullptr) return;
  const std::int64_t heads = found->shape.front();
  const std::vector<std::int64_t> shape(found->shape.begin() + 1, found->shape.end());
  for (std::int64_t head = 0; head < heads; ++head) {
    slots_.push_back(
        {at_ + fmt::format(fmt::runtime(name), head), shape, {{found->name, shape, found->kind, head, heads}}});
  }
}

/// Adds a projection of every expert: one stack, or one tensor for each expert.
void SlotList::expert_linear(std::string_view module, std::string_view field) {
  for (const auto& [name, suffix] :
       {std::pair{std::string(field), "weight"}, std::pair{std::string(field) + "_bias", "bias"}}) {
    const WeightField* found = wanted(name);
    if (found == nullptr) continue;
    if (module.find("{}") == std::string_view::npos) {
      complete(fmt::format("{}{}.{}", at_, module, suffix), name);
      continue;
    }
    const std::vector<std::int64_t> shape(found->shape.begin() + 1, found->shape.end());
    for (std::int64_t expert = 0; expert < config_.experts.count; ++expert) {
      slots_.push_back({fmt::format("{}{}.{}", at_, fmt::format(fmt::runtime(module), expert), suffix),
                        shape,
                        {{found->name, shape, found->kind, expert, config_.experts.count}}});
    }
  }
}

void SlotList::expert_stack(std::string_view name, std::initializer_list<std::string_view> fields, bool transposed) {
  TensorSlot slot{.name = at_ + std::string(name),
                  .order = names_.expert_stacks_by_output ? RowOrder::sequential : RowOrder::alternating,
                  .row_dimension = 1,
                  .transposed = transposed};
  for (const std::string_view field : fields) {
    if (const WeightField* found = wanted(field)) slot.parts.push_back({found->name, found->shape, found->kind});
  }
  if (!slot.parts.empty()) finish(std::move(slot));
}

}  // namespace

std::vector<TensorSlot> outer_slots(const DecoderConfig& config, const TensorNames& names) {
  const std::string prefix(names.prefix);
  SlotList list(config, names, outer_fields(config), prefix);
  list.complete(fmt::format("{}{}.weight", prefix, names.embedding), "embedding");
  list.complete(fmt::format("{}{}.weight", prefix, names.position_embedding), "position_embedding");
  list.norm(names.embedding_norm, "embedding_norm", "embedding_norm_bias");
  for (const bft::FilterSlot& slot : token_precision_slots(config))
    list.complete(prefix + std::string(slot.name), slot.name);
  list.norm(names.final_norm, "final_norm", "final_norm_bias");
  list.complete(std::string(names.head) + ".weight", "head");
  list.complete(std::string(names.head) + ".bias", "head_bias");
  return list.take();
}

std::vector<TensorSlot> layer_slots(const DecoderConfig& config, const TensorNames& names, std::int64_t layer) {
  SlotList list(config, names, layer_fields(config, layer),
                std::string(names.prefix) + fmt::format(fmt::runtime(names.layer), layer), layer);
  list.attention();
  list.delta();
  list.convolution();
  list.mlp();
  list.filter();
  return list.take();
}

std::vector<TensorSlot> tensor_slots(const DecoderConfig& config, const TensorNames& names) {
  std::vector<TensorSlot> outer = outer_slots(config, names);
  // The order of a checkpoint: the tensors before the layers, the layers, the final norm and the head.
  std::size_t before = 0;
  while (outer[before].parts.front().field != "final_norm") ++before;
  std::vector<TensorSlot> slots(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(before));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (TensorSlot& slot : layer_slots(config, names, layer)) slots.push_back(std::move(slot));
  }
  slots.insert(slots.end(), outer.begin() + static_cast<std::ptrdiff_t>(before), outer.end());
  return slots;
}

}  // namespace gainlens::models
