#include "recommend/hstu_config.h"

#include "core/check.h"
#include "models/families/config_reader.h"
#include "recommend/recommender_files.h"
#include "recommend/stored_arm.h"

#include <limits>
#include <vector>

namespace gainlens::recommend {
namespace {

std::vector<Knob<HstuConfig>> make_hstu_knobs() {
  using Owner = HstuConfig;
#define GAINLENS_MEMBER(name) ([](Owner & config) -> auto& { return config.name; })
  std::vector<Knob<Owner>> knobs = size_knobs<Owner>();
  const std::vector<Knob<Owner>> shared = embedding_knobs<Owner>();
  knobs.insert(knobs.end(), shared.begin(), shared.end());
  knobs.push_back(flag_knob<Owner>("time_bias", "scores depend on the time between two interactions, of backbone hstu",
                                   GAINLENS_MEMBER(time_bias)));
  knobs.push_back(choice_knob<Owner>(
      "precision_place",
      "precision and decay enter the weight of backbone hstu before its SiLU (presilu) or as a factor (multiplicative)",
      {"presilu", "multiplicative"}, GAINLENS_MEMBER(precision_place)));
  const std::vector<Knob<Owner>> others = {
      whole_knob<Owner>("extra_length", "added to 'positions', it is what the weights of backbone hstu are divided by",
                        GAINLENS_MEMBER(extra_length), 0),
      choice_knob<Owner>("score_scale",
                         "scores of backbone hstu are divided by the root of a head's dimensions (root) or not (one)",
                         {"root", "one"}, GAINLENS_MEMBER(score_scale)),
      flag_knob<Owner>("attention_norm_weights",
                       "the norms of backbone hstu before and after attention have weights and biases",
                       GAINLENS_MEMBER(attention_norm_weights)),
      real_knob<Owner>("projection_deviation", "of W_O of backbone hstu before training",
                       GAINLENS_MEMBER(projection_deviation), {0, 1e6, false}),
      choice_knob<Owner>("output",
                         "scores of backbone hstu are dot products after a norm (norm), or cosines over a temperature "
                         "(unit)",
                         {"norm", "unit"}, GAINLENS_MEMBER(output)),
      real_knob<Owner>("temperature", "of the scores of backbone hstu with 'output' unit", GAINLENS_MEMBER(temperature),
                       {0, 1e6, false})};
  knobs.insert(knobs.end(), others.begin(), others.end());
#undef GAINLENS_MEMBER
  return knobs;
}

/// What the filter of weights of both signs cannot be.
void check_hstu_filter(const HstuConfig& config, const std::string& where) {
  const bft::FilterOptions& filter = config.filter;
  const bft::StreamUpdate update = config.armed_filter().parts().update;
  CHECK(update == bft::StreamUpdate::sum,
        "{}: backbone {} has no arm {}: it takes what attention finds as a measurement of the stream, and here a gate "
        "and a norm have changed its scale; choose bft",
        where, hstu_name, name_of(config.arm));
  const bool em =
      filter.initial_precision == bft::InitialPrecision::em && config.armed_filter().has_initial_precision();
  CHECK(!em,
        "{}: 'initial_precision' is em; em reads attention's mean, and the weights of backbone {} do not sum to one",
        where, hstu_name);
  if (!config.has_gain()) return;
  CHECK(
      filter.estimator == bft::Estimator::sandwich,
      "{}: 'estimator' is {}; the weights of backbone {} may be negative and do not sum to one, and sandwich alone is "
      "defined for them",
      where, name_of(filter.estimator), hstu_name);
  CHECK(filter.kriging == bft::Kriging::scalar,
        "{}: 'kriging' is per_dimension; the weights of backbone {} do not sum to one, so it has scalar alone", where,
        hstu_name);
}

}  // namespace

Json hstu_defaults() {
  return {
      {"dropout", hstu_most_dropout}, {"attention_dropout", 0}, {"estimator", "sandwich"}, {"output_projection", true}};
}

void check(const HstuConfig& config, const std::string& where) {
  check_shape(config, where);
  CHECK(config.extra_length <= 1 << 20, "{}: 'extra_length' is {}; must be at most {}", where, config.extra_length,
        1 << 20);
  if (config.arm == Arm::plain) return;
  check_hstu_filter(config, where);
  bft::check(config.filter, where);
}

std::string why_idle(const HstuConfig& config, std::string_view key) {
  if (key == "inner_width" && !config.has_mlp()) return fmt::format("arm {} has no MLP", name_of(config.arm));
  if (key == "precision_place" && !config.armed_filter().has_biased_scores())
    return fmt::format("arm {} has neither a precision nor a decay in its weights", name_of(config.arm));
  if (key == "temperature" && config.output == HstuOutput::norm) return "'output' is \"norm\"";
  if (key == "projection_deviation" && !config.armed_filter().has_output_projection())
    return fmt::format("arm {} has no output projection", name_of(config.arm));
  return {};
}

Json hstu_reference_settings() {
  return {{"embedding_factor", "sqrt_width"},
          {"alignment", "start"},
          {"norm_epsilon", 1e-6},
          {"extra_length", 11},
          {"score_scale", "one"},
          {"attention_norm_weights", false},
          {"projection_deviation", 0.125},
          {"output", "unit"},
          {"loss", "sampled"},
          {"negatives", 128},
          {"negative_exponent", 0},
          {"beta2", 0.98},
          {"batch", 128},
          {"epochs", 101},
          {"patience", 0}};
}

std::span<const Knob<HstuConfig>> hstu_knobs() {
  static const std::vector<Knob<HstuConfig>> knobs = make_hstu_knobs();
  return knobs;
}

OrderedJson to_json(const HstuConfig& config) {
  OrderedJson document = {{"model_type", model_type_of(hstu_name)}, {"items", config.items}};
  document.update(knobs_to_json(hstu_knobs(), config));
  write_arm(document, config.arm, config.filter);
  return document;
}

HstuConfig parse_hstu_config(const Json& document, const std::string& where) {
  HstuConfig config;
  models::ConfigReader reader(document, where);
  expect_text(reader, "model_type", model_type_of(hstu_name));
  config.items = reader.integer("items", 1, std::numeric_limits<std::int64_t>::max());
  Json options = Json::object();
  for (const Knob<HstuConfig>& knob : hstu_knobs()) {
    if (const Json* value = reader.find(knob.key)) options[knob.key] = *value;
  }
  read_knobs(hstu_knobs(), config, options, where);
  read_arm(reader, config.arm, config.filter);
  check_all_read(reader);
  check(config, where);
  return config;
}

}  // namespace gainlens::recommend
