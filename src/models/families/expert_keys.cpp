#include "models/families/expert_keys.h"

#include "core/check.h"

namespace gainlens::models {
Experts parse_experts(ConfigReader& reader, std::string_view count_key, std::int64_t default_count,
                      std::int64_t default_per_token) {
  Experts experts;
  experts.count = reader.integer(count_key, 1, max_experts, default_count);
  experts.per_token = reader.integer("num_experts_per_tok", 1, experts.count, default_per_token);
  return experts;
}

std::vector<bool> parse_sparse_layers(ConfigReader& reader, std::int64_t layers) {
  const std::int64_t step = reader.integer("decoder_sparse_step", 1, 4096, 1);
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < layers; ++layer) sparse.push_back((layer + 1) % step == 0);
  const Json* dense = reader.find_non_null("mlp_only_layers");
  if (dense == nullptr) return sparse;
  CHECK(dense->is_array(), "{}: 'mlp_only_layers' is {}; must be a list of layers", reader.where(), brief(*dense));
  for (const Json& layer : *dense) {
    CHECK(layer.is_number_integer() && layer >= 0 && layer < layers,
          "{}: 'mlp_only_layers' holds {}; each must be a layer, 0 to {}", reader.where(), brief(layer), layers - 1);
    sparse[layer.get<std::size_t>()] = false;
  }
  return sparse;
}

void parse_expert_groups(ConfigReader& reader, Experts& experts, std::optional<std::int64_t> default_groups,
                         std::optional<std::int64_t> default_kept) {
  experts.groups = reader.integer("n_group", 1, experts.count, default_groups);
  experts.kept_groups = reader.integer("topk_group", 1, experts.groups, default_kept);
  const std::int64_t size = experts.count / experts.groups;
  CHECK(experts.count % experts.groups == 0 && size >= experts.group_leaders,
        "{}: {} experts in {} groups ('n_group'); groups must be of one size, at least {}", reader.where(),
        experts.count, experts.groups, experts.group_leaders);
  CHECK(experts.per_token <= experts.kept_groups * size,
        "{}: 'num_experts_per_tok' is {}, and {} groups of {} experts are kept ('topk_group')", reader.where(),
        experts.per_token, experts.kept_groups, size);
}

void name_experts(TensorNames& names) {
  names.expert_gate = "mlp.experts.{}.gate_proj";
  names.expert_up = "mlp.experts.{}.up_proj";
  names.expert_down = "mlp.experts.{}.down_proj";
}

std::vector<std::string_view> router_training_keys() {
  return {"output_router_logits", "router_aux_loss_coef"};
}

}  // namespace gainlens::models
