#include "recommend/settings.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <map>
#include <vector>

namespace gainlens::recommend {
namespace {

#define GAINLENS_MEMBER(name) ([](Settings & settings) -> auto& { return settings.name; })

std::vector<Knob<Settings>> training_knobs() {
  using Owner = Settings;
  return {
      real_knob<Owner>("dropout", "of the embeddings and of what each part adds", GAINLENS_MEMBER(dropout), {0, 1}),
      real_knob<Owner>("attention_dropout", "of the attention weights", GAINLENS_MEMBER(attention_dropout), {0, 1}),
      choice_knob<Owner>("loss",
                         "cross-entropy over all items (full), or over sampled ones with log-Q correction (sampled)",
                         {"full", "sampled"}, GAINLENS_MEMBER(loss)),
      whole_knob<Owner>("negatives", "items drawn for each step; loss sampled", GAINLENS_MEMBER(negatives), 1),
      real_knob<Owner>("negative_exponent", "items are drawn in proportion to (training count)^this; loss sampled",
                       GAINLENS_MEMBER(negative_exponent), {0, 10}),
      real_knob<Owner>("learning_rate", "of Adam", GAINLENS_MEMBER(learning_rate), {0, 1e6, false}),
      real_knob<Owner>("precision_learning_rate", "factor on the learning rate of the parameters of precision",
                       GAINLENS_MEMBER(precision_learning_rate), {0, 1e6, false}),
      real_knob<Owner>("beta2", "of Adam", GAINLENS_MEMBER(beta2), {0, 1}),
      real_knob<Owner>("weight_decay", "of matrices and embeddings, decoupled", GAINLENS_MEMBER(weight_decay),
                       {0, 1e6}),
      real_knob<Owner>("max_gradient_norm", "larger gradients are scaled down to it; 0: never",
                       GAINLENS_MEMBER(max_gradient_norm), {}),
      whole_knob<Owner>("batch", "users of a step", GAINLENS_MEMBER(batch), 1),
      whole_knob<Owner>("epochs", "at most", GAINLENS_MEMBER(epochs), 1),
      whole_knob<Owner>("patience", "epochs without a better validation NDCG@10 before training stops; 0: never",
                        GAINLENS_MEMBER(patience), 0),
      whole_knob<Owner>("save_every", "epochs between saved states", GAINLENS_MEMBER(save_every), 1),
  };
}

std::vector<Knob<Settings>> make_knobs(const BackboneKind& backbone) {
  auto made = knobs_of_part<Settings>(std::span<const Knob<Json>>(backbone.knobs), GAINLENS_MEMBER(model));
  const auto of_training = training_knobs();
  const auto of_filter = knobs_of_part<Settings>(bft::filter_knobs(), GAINLENS_MEMBER(filter));
  made.insert(made.end(), of_training.begin(), of_training.end());
  made.insert(made.end(), of_filter.begin(), of_filter.end());
  return made;
}

#undef GAINLENS_MEMBER

void check_together(const Settings& settings, const std::string& where) {
  settings.backbone->check(plan_of(settings, Arm::plain, 1), where);
  bft::check(settings.filter, where);
}

}  // namespace

std::span<const Knob<Settings>> knobs(const BackboneKind& backbone) {
  static const std::map<std::string, std::vector<Knob<Settings>>> of_backbones = [] {
    std::map<std::string, std::vector<Knob<Settings>>> made;
    for (const BackboneKind& kind : backbones()) made[kind.name] = make_knobs(kind);
    return made;
  }();
  return of_backbones.at(backbone.name);
}

ModelPlan plan_of(const Settings& settings, Arm arm, std::int64_t items) {
  return {settings.model, arm, settings.filter, items};
}

OrderedJson to_json(const Settings& settings) {
  return knobs_to_json(knobs(*settings.backbone), settings);
}

void check_settings(const Json& changes, const std::string& where, const BackboneKind& backbone) {
  Settings settings{.backbone = &backbone};
  set_knobs(knobs(backbone), settings, changes, where);
}

Settings settings_of(const Json& changes, const std::string& where, const BackboneKind& backbone) {
  Settings settings{.backbone = &backbone};
  set_knobs(knobs(backbone), settings, changes, where);
  check_together(settings, where);
  return settings;
}

Settings stored_settings(const Json& stored, const std::string& where, const BackboneKind& backbone) {
  Settings settings{.backbone = &backbone};
  read_knobs(knobs(backbone), settings, stored, where);
  check_together(settings, where);
  return settings;
}

training::RequestRules request_rules(const BackboneKind& backbone) {
  return {
      .may_grow = {"/training/epochs"},
      .may_gain = {"/variants"},
      .names = {"/data/name"},
      .first = {"/backbone"},
      .absent = {{"", {{"processes", 1}, {"variants", Json::object()}}}, {"/training", absent_values(knobs(backbone))}},
      .complete = {"", "/data", "/training"}};
}

Json preset(std::string_view name) {
  if (name == "paper") return Json::object();
  if (name == "beauty-tuned") {
    return {{"initial_precision", "count"},
            {"most_precision", 20},
            {"recency_decay", true},
            {"epochs", 300},
            {"patience", 30}};
  }
  const std::vector<std::string> names = {"paper", "beauty-tuned"};
  throw_invalid("--preset: '{}'; must be {}{}", printable(name, 60), fmt::join(names, " or "),
                did_you_mean(name, names));
}

}  // namespace gainlens::recommend
