#include "models/checkpoint/layout_names.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace gainlens::models {
namespace {

using Entries = std::map<std::string, formats::TensorEntry, std::less<>>;

bool any_starts_with(const Entries& entries, std::string_view start) {
  const auto first = entries.lower_bound(start);
  return first != entries.end() && first->first.starts_with(start);
}

bool any_ends_with(const Entries& entries, std::string_view end) {
  return std::ranges::any_of(entries, [end](const auto& entry) { return entry.first.ends_with(end); });
}

constexpr std::string_view head_of_text_half = "language_model.lm_head";

void begin_as_in(const Entries& entries, const Family& family, TensorNames& names) {
  if (any_starts_with(entries, names.prefix)) {
    // "model." begins "model.language_model." too.
    const bool inside = names.prefix == "model." && any_starts_with(entries, text_half_prefixes[0]);
    if (!inside) return;
  }
  for (const OtherLayout& layout : family.layouts) {
    if (!any_starts_with(entries, layout.prefix)) continue;
    names.prefix = layout.prefix;
    names.head = layout.head;
    return;
  }
  if (names.prefix == "model.") {
    for (const std::string_view prefix : text_half_prefixes) {
      if (!any_starts_with(entries, prefix)) continue;
      names.prefix = prefix;
      if (any_starts_with(entries, head_of_text_half)) names.head = head_of_text_half;
      return;
    }
  }
  if (any_starts_with(entries, names.layer.substr(0, names.layer.find('{')))) names.prefix = "";
}

/// Where the experts of a layer may stand.
struct ExpertPlace {
  std::string_view router;
  std::string_view stack, down_stack;  ///< of all experts, with the rows of the gates before those of the others
  std::string_view gate, up, down;     ///< of one expert
};

constexpr std::array<ExpertPlace, 2> expert_places = {
    {{"mlp.gate", "mlp.experts.gate_up_proj", "mlp.experts.down_proj", "mlp.experts.{}.gate_proj",
      "mlp.experts.{}.up_proj", "mlp.experts.{}.down_proj"},
     {"block_sparse_moe.gate", "block_sparse_moe.experts.gate_up_proj", "block_sparse_moe.experts.down_proj",
      "block_sparse_moe.experts.{}.gate_proj", "block_sparse_moe.experts.{}.up_proj",
      "block_sparse_moe.experts.{}.down_proj"}}};

/// Takes stacks of experts in a family with experts one by one, if the checkpoint has stacks.
void stack_experts(const Entries& entries, TensorNames& names) {
  for (const ExpertPlace& place : expert_places) {
    if (!any_ends_with(entries, place.stack)) continue;
    names.expert_gate_up = place.stack;
    names.expert_down_stack = place.down_stack;
    names.expert_stacks_by_output = true;
    if (!any_ends_with(entries, std::string(names.router) + ".weight")) names.router = place.router;
    return;
  }
}

/// Takes experts one by one in a family with stacks, if the checkpoint has them so.
void split_experts(const Entries& entries, TensorNames& names) {
  for (const ExpertPlace& place : expert_places) {
    if (place.stack != names.expert_gate_up || any_ends_with(entries, place.stack)) continue;
    const std::string module(place.stack.substr(0, place.stack.rfind('.')));
    if (!any_ends_with(entries, module + ".0.gate_proj.weight")) continue;
    names.expert_gate_up = names.expert_down_stack = "";
    names.expert_gate = place.gate;
    names.expert_up = place.up;
    names.expert_down = place.down;
    return;
  }
}

/// What transformers 5 calls the sinks of every family.
constexpr std::string_view usual_sinks = "self_attn.sinks";

}  // namespace

TensorNames names_in(const Entries& entries, const Family& family, TensorNames names) {
  begin_as_in(entries, family, names);
  if (!names.expert_gate.empty()) {
    stack_experts(entries, names);
  } else if (names.expert_stacks_by_output) {
    split_experts(entries, names);
  }
  if (!names.sink_logit.empty() && !any_ends_with(entries, names.sink_logit) && any_ends_with(entries, usual_sinks))
    names.sink_logit = usual_sinks;
  return names;
}

}  // namespace gainlens::models
