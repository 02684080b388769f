#include "models/families/expert_keys.h"

namespace gainlens::models {
namespace {

constexpr std::int64_t max_experts = 1 << 14;

}  // namespace

Experts parse_experts(ConfigReader& reader, std::string_view count_key, std::int64_t default_count,
                      std::int64_t default_per_token) {
  Experts experts;
  experts.count = reader.integer(count_key, 1, max_experts, default_count);
  experts.per_token = reader.integer("num_experts_per_tok", 1, experts.count, default_per_token);
  return experts;
}

std::vector<std::string_view> router_training_keys() {
  return {"output_router_logits", "router_aux_loss_coef"};
}

}  // namespace gainlens::models
