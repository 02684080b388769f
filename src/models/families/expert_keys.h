#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"
#include "models/families/tensor_names.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Reads the number of experts, under the name that the family uses, and num_experts_per_tok.
/// @throws InvalidArgument  as ConfigReader; more experts for each token than there are
Experts parse_experts(ConfigReader& reader, std::string_view count_key, std::int64_t default_count,
                      std::int64_t default_per_token);

/// [layer] whether it has experts: each `decoder_sparse_step`-th, except those in `mlp_only_layers`.
/// @throws InvalidArgument  as ConfigReader; `mlp_only_layers` is no list of layers
std::vector<bool> parse_sparse_layers(ConfigReader& reader, std::int64_t layers);

/// Reads `n_group` and `topk_group`: the groups in which experts stand, and how many of them a token chooses from.
/// @param experts  with `count`, `per_token` and `group_leaders`
/// @throws InvalidArgument  as ConfigReader; the groups differ in size, or are too small for `group_leaders`; fewer
///     experts are kept than each token uses
void parse_expert_groups(ConfigReader& reader, Experts& experts, std::optional<std::int64_t> default_groups,
                         std::optional<std::int64_t> default_kept);

/// The names of experts that are stored one by one, as in most families.
void name_experts(TensorNames& names);

/// Keys for the training of a router. Families with experts have them.
std::vector<std::string_view> router_training_keys();

/// Experts of a layer in config.json are at most this many.
inline constexpr std::int64_t max_experts = std::int64_t{1} << 14;
/// Widths in config.json are at most this.
inline constexpr std::int64_t max_expert_width = std::int64_t{1} << 24;

}  // namespace gainlens::models
