#include "recommend/hstu_backbone.h"

#include "core/counted.h"
#include "recommend/hstu.h"
#include "recommend/stored_arm.h"

#include <memory>
#include <string>

namespace gainlens::recommend {
namespace {

HstuConfig hstu_config_of(const ModelPlan& plan) {
  HstuConfig config;
  set_knobs(hstu_knobs(), config, plan.options, "settings");
  config.items = plan.items;
  config.arm = plan.arm;
  if (plan.arm != Arm::plain) config.filter = plan.filter;  // a plain checkpoint does not store what it does not read
  return config;
}

std::unique_ptr<Backbone> make_hstu(const ModelPlan& plan, std::uint64_t seed) {
  const HstuConfig config = hstu_config_of(plan);
  return std::make_unique<Hstu>(config, initial_hstu_weights(config, seed));
}

std::unique_ptr<Backbone> open_hstu(const Json& document, const std::string& where, const WeightSource& source) {
  const HstuConfig config = parse_hstu_config(document, where);
  return std::make_unique<Hstu>(config, stored_hstu_weights(config, source));
}

ModelNumbers hstu_memory(const ModelPlan& plan) {
  const HstuConfig config = hstu_config_of(plan);
  const auto width = static_cast<double>(config.width), layers = static_cast<double>(config.layers);
  const auto inner = config.has_mlp() ? static_cast<double>(config.inner_width) : 0;
  const double embedding = (static_cast<double>(config.items) + static_cast<double>(config.positions)) * width;
  const double layer = 5 * width * width + 2 * width * inner;
  // What a layer keeps for its backward pass, and the gradients on their way, as for SASRec.
  const double filter_numbers = config.has_gain() ? 10 * width + 2 * inner : 0;
  return {.parameters = 6 * embedding + 4 * layers * layer,
          .one_position = layers * (16 * width + 2 * inner + filter_numbers) + 6 * width};
}

}  // namespace

BackboneKind hstu_backbone() {
  return {.name = std::string(hstu_name),
          .help = "HSTU, gated attention with SiLU in place of the softmax and a bias of time (Zhai et al., 2024)",
          .knobs = erased_knobs(hstu_knobs()),
          .check = [](const ModelPlan& plan, const std::string& where) { check(hstu_config_of(plan), where); },
          .view = [](const ModelPlan& plan) { return view_of(hstu_config_of(plan)); },
          .make = make_hstu,
          .open = open_hstu,
          .memory = hstu_memory,
          .defaults = hstu_defaults(),
          .presets = {{"reference", "backbone hstu: what the published research code does, but for its times",
                       hstu_reference_settings()}},
          .max_dropout = hstu_most_dropout,
          .why_idle = [](const ModelPlan& plan, std::string_view key) { return why_idle(hstu_config_of(plan), key); },
          .without_times = "--no-time-bias"};
}

const BackboneKind& Hstu::kind() const {
  return backbone_named(hstu_name, "model");
}

std::vector<ModelFact> Hstu::facts() const {
  const HstuConfig& config = config_;
  const bft::Filter& filter = filter_;
  std::vector<ModelFact> facts = {
      {"arm", fmt::format("{}: {}", filter.parts().name, filter.parts().help), std::string(filter.parts().name)},
      {"items", fmt::format("{}", config.items), config.items},
      {"layers", fmt::format("{}", config.layers), config.layers},
      {"heads", fmt::format("{} of {} dimensions", config.heads, config.head_dim()), config.heads},
      {"width",
       fmt::format("{}; {}", config.width,
                   config.has_mlp() ? fmt::format("{} neurons in the MLP", config.inner_width) : "no MLP"),
       config.width},
      {"history", fmt::format("the last {}", counted(config.positions, "item")), config.positions},
      {"weights divided by", fmt::format("{}", config.length()), config.length()},
      {"scores",
       config.output == HstuOutput::unit ? fmt::format("cosines over {}", config.temperature) : "dot products",
       config.output == HstuOutput::unit ? "cosine" : "dot"},
      {"time bias", config.time_bias ? "by the time since each earlier interaction" : "none", config.time_bias}};
  if (config.arm == Arm::plain) return facts;
  facts.push_back({"filter", changed_options(config.filter), Json(knobs_to_json(bft::filter_knobs(), config.filter))});
  return facts;
}

}  // namespace gainlens::recommend
