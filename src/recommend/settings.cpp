#include "recommend/settings.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <vector>

namespace gainlens::recommend {
namespace {

#define GAINLENS_MEMBER(name) ([](Settings & settings) -> auto& { return settings.name; })

std::vector<Knob<Settings>> make_knobs() {
  using Owner = Settings;
  std::vector<Knob<Settings>> made = {
      whole_knob<Owner>("width", "of the residual stream", GAINLENS_MEMBER(model.width), 1),
      whole_knob<Owner>("heads", "attention heads; must divide the width", GAINLENS_MEMBER(model.heads), 1),
      whole_knob<Owner>("layers", "layers", GAINLENS_MEMBER(model.layers), 1),
      whole_knob<Owner>("inner_width", "neurons of the MLP", GAINLENS_MEMBER(model.inner_width), 1),
      whole_knob<Owner>("positions", "items of a history that the model sees, the last ones",
                        GAINLENS_MEMBER(model.positions), 1),
      choice_knob<Owner>("norm", "norms before each part (pre) or after each sum (post)", {"pre", "post"},
                         GAINLENS_MEMBER(model.norm)),
      flag_knob<Owner>("embedding_norm", "a norm after the embeddings", GAINLENS_MEMBER(model.embedding_norm)),
      real_knob<Owner>("norm_epsilon", "added to the variance in norms", GAINLENS_MEMBER(model.norm_epsilon),
                       {1e-15, 1}),
      choice_knob<Owner>("alignment", "the last item (end) or the first (start) has a fixed position", {"end", "start"},
                         GAINLENS_MEMBER(model.alignment)),
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
  const auto of_filter = knobs_of_part<Settings>(bft::filter_knobs(), GAINLENS_MEMBER(model.filter));
  made.insert(made.end(), of_filter.begin(), of_filter.end());
  return made;
}

#undef GAINLENS_MEMBER

void check_together(const Settings& settings, const std::string& where) {
  SasRecConfig model = settings.model;
  model.items = 1;
  check(model, where);
  bft::check(model.filter, where);
}

}  // namespace

std::span<const Knob<Settings>> knobs() {
  static const std::vector<Knob<Settings>> made = make_knobs();
  return made;
}

OrderedJson to_json(const Settings& settings) {
  return knobs_to_json(knobs(), settings);
}

void check_settings(const Json& changes, const std::string& where) {
  Settings settings;
  set_knobs(knobs(), settings, changes, where);
}

Settings settings_of(const Json& changes, const std::string& where) {
  Settings settings;
  set_knobs(knobs(), settings, changes, where);
  check_together(settings, where);
  return settings;
}

Settings stored_settings(const Json& stored, const std::string& where) {
  Settings settings;
  read_knobs(knobs(), settings, stored, where);
  check_together(settings, where);
  return settings;
}

const training::RequestRules& request_rules() {
  static const training::RequestRules rules = {
      .may_grow = {"/training/epochs"},
      .may_gain = {"/variants"},
      .names = {"/data/name"},
      .absent = {{"", {{"processes", 1}, {"variants", Json::object()}}}, {"/training", absent_values(knobs())}},
      .complete = {"", "/data", "/training"}};
  return rules;
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
