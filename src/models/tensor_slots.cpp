#include "models/tensor_slots.h"

#include "models/gate_rows.h"

#include <fmt/format.h>

namespace gainlens::models {
namespace {

/// Collects the slots of one checkpoint; `at` is what the names that follow begin with.
class SlotList {
 public:
  SlotList(const DecoderConfig& config, const TensorNames& names) : config_(config), names_(names) {}

  void add(const std::string& at, std::string_view module, std::vector<std::int64_t> shape, at::Tensor& target) {
    slots_.push_back({fmt::format("{}{}.weight", at, module), std::move(shape), &target});
  }

  /// A projection [out, in] with its bias [out].
  void add_linear(const std::string& at, std::string_view module, std::int64_t out, std::int64_t in, at::Tensor& weight, at::Tensor& bias,
                  bool has_bias) {
    add(at, module, {out, in}, weight);
    if (has_bias) slots_.push_back({fmt::format("{}{}.bias", at, module), {out}, &bias});
  }

  void add_attention(const std::string& at, LayerWeights& layer) {
    const std::int64_t query_rows = config_.heads * config_.head_dim, kv_rows = config_.kv_heads * config_.head_dim;
    add(at, names_.attention_norm, {config_.width}, layer.attention_norm);
    const std::size_t first = slots_.size();
    add_linear(at, names_.query, query_rows + gate_rows(config_), config_.width, layer.query, layer.query_bias, config_.qkv_bias);
    if (config_.gate != Gate::none) {
      slots_[first].gate_target = &layer.gate_score;
      if (config_.qkv_bias) slots_[first + 1].gate_target = &layer.gate_score_bias;
    }
    add_linear(at, names_.key, kv_rows, config_.width, layer.key, layer.key_bias, config_.qkv_bias);
    add_linear(at, names_.value, kv_rows, config_.width, layer.value, layer.value_bias, config_.qkv_bias);
    add_linear(at, names_.output, config_.width, query_rows, layer.output, layer.output_bias, config_.output_bias);
    if (config_.qk_norm) {
      add(at, names_.query_norm, {config_.head_dim}, layer.query_norm);
      add(at, names_.key_norm, {config_.head_dim}, layer.key_norm);
    }
  }

  void add_mlp(const std::string& at, LayerWeights& layer) {
    add(at, names_.mlp_norm, {config_.width}, layer.mlp_norm);
    add_linear(at, names_.mlp_gate, config_.mlp_width, config_.width, layer.mlp_gate, layer.mlp_gate_bias, config_.mlp_bias);
    add_linear(at, names_.mlp_up, config_.mlp_width, config_.width, layer.mlp_up, layer.mlp_up_bias, config_.mlp_bias);
    add_linear(at, names_.mlp_down, config_.width, config_.mlp_width, layer.mlp_down, layer.mlp_down_bias, config_.mlp_bias);
  }

  std::vector<TensorSlot> take() { return std::move(slots_); }

 private:
  const DecoderConfig& config_;
  const TensorNames& names_;
  std::vector<TensorSlot> slots_;
};

}  // namespace

std::vector<TensorSlot> tensor_slots(const DecoderConfig& config, const TensorNames& names, DecoderWeights& weights) {
  SlotList list(config, names);
  const std::string prefix(names.prefix);
  list.add(prefix, names.embedding, {config.vocabulary, config.width}, weights.embedding);
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t index = 0; index < weights.layers.size(); ++index) {
    const std::string at = prefix + fmt::format(fmt::runtime(names.layer), index);
    list.add_attention(at, weights.layers[index]);
    list.add_mlp(at, weights.layers[index]);
  }
  list.add(prefix, names.final_norm, {config.width}, weights.final_norm);
  if (!config.tied_head) list.add("", names.head, {config.vocabulary, config.width}, weights.head);
  return list.take();
}

}  // namespace gainlens::models
