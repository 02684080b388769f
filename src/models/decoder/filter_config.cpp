#include "models/decoder/filter_config.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

namespace gainlens::models {
namespace {

void check_decoder(const DecoderConfig& config, const std::string& where) {
  CHECK(!config.post_norm || config.armed_filter().parts().factor == bft::AttentionFactor::one ||
            config.filter->gain_place == bft::GainPlace::after,
        "{}: results are normalised before they are added to the stream, and a norm takes back a gain in front of it; "
        "give 'gain_place' after",
        where);
  CHECK(!config.parallel_residual,
        "{}: attention and MLP read the same stream; the filter needs the MLP to read the result of attention", where);
  CHECK(config.attention_layers(config.layers) == config.layers,
        "{}: layers of {} have no attention weights, and the filter needs them in every layer", where,
        config.without_attention());
  CHECK(!config.sink_logits, "{}: attention has sink logits; the filter needs weights that sum to 1", where);
  CHECK(!config.has_latent(), "{}: the model has latent attention, which the filter does not know", where);
  CHECK(config.experts.count == 0, "{}: the MLP is a mixture of experts; its Jacobian is not known to the filter",
        where);
  CHECK(!config.clipped_gate, "{}: the MLP clips its gate; its Jacobian is not known to the filter", where);
}

/// Decoders always have an output projection. Their tokens have no counts, so popularity means nothing.
constexpr bft::Arm decoder_arms[] = {bft::Arm::plain, bft::Arm::bft, bft::Arm::plain_decay, bft::Arm::gate,
                                     bft::Arm::constant_k};

}  // namespace

std::vector<std::string> decoder_arm_names() {
  std::vector<std::string> names;
  for (const bft::Arm arm : decoder_arms) names.emplace_back(bft::name_of(arm));
  return names;
}

bft::Arm decoder_arm(const std::string& name, const std::string& where) {
  for (const bft::Arm arm : decoder_arms) {
    if (name == bft::name_of(arm)) return arm;
  }
  const std::vector<std::string> names = decoder_arm_names();
  throw_invalid("{}: '{}'; must be one of {}{}", where, printable(name, 60), fmt::join(names, ", "),
                did_you_mean(name, names));
}

bft::FilterOptions default_decoder_filter() {
  bft::FilterOptions filter;
  filter.output_projection = true;
  return filter;
}

void check_filter_options(const bft::FilterOptions& filter, const std::string& where) {
  bft::check(filter, where);
  CHECK(filter.initial_precision == bft::InitialPrecision::content ||
            filter.initial_precision == bft::InitialPrecision::table,
        "{}: 'initial_precision' is count or em, which need counts of items; a decoder takes content or table", where);
  CHECK(bft::needs_moments_alone(filter.estimator),
        "{}: 'estimator' is {}, which needs all weights of attention at once; a decoder takes reml or reml_conjugate",
        where, bft::name_of(filter.estimator));
  CHECK(filter.kriging == bft::Kriging::scalar, "{}: 'kriging' is per_dimension; a decoder takes scalar", where);
  CHECK(!filter.norm_jacobian, "{}: 'norm_jacobian' is true; a decoder takes false", where);
  CHECK(filter.decay_owner == bft::DecayOwner::layer, "{}: 'decay_owner' is head; a decoder takes layer", where);
  CHECK(filter.warm_up_unit == bft::WarmUpUnit::steps,
        "{}: 'warm_up_unit' is epochs; the training of a decoder has none, give steps", where);
  CHECK(filter.output_projection, "{}: 'output_projection' is false; a decoder always has one, give true", where);
}

void check_filter(const DecoderConfig& config, const std::string& where) {
  if (!config.filter) return;
  check_filter_options(*config.filter, where);
  check_decoder(config, where);
}

bft::FilterOptions parse_filter(const Json& options, const std::string& where) {
  bft::FilterOptions filter;
  read_knobs(bft::filter_knobs(), filter, options, where);
  // Recommenders had no output projection before the option existed. A decoder with a filter always has one.
  if (!options.contains("output_projection")) filter.output_projection = true;
  return filter;
}

}  // namespace gainlens::models
