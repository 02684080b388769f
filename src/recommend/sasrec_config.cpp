#include "recommend/sasrec_config.h"

#include "core/check.h"
#include "core/knobs.h"
#include "models/families/config_reader.h"
#include "recommend/recommender_files.h"
#include "recommend/stored_arm.h"

#include <limits>
#include <vector>

namespace gainlens::recommend {
namespace {

#define GAINLENS_MEMBER(name) ([](SasRecConfig & config) -> auto& { return config.name; })

std::vector<Knob<SasRecConfig>> make_knobs(bool bidirectional) {
  using Owner = SasRecConfig;
  std::vector<Knob<Owner>> knobs = size_knobs<Owner>();
  knobs.push_back(choice_knob<Owner>("norm", "norms before each part (pre) or after each sum (post)", {"pre", "post"},
                                     GAINLENS_MEMBER(norm)));
  const std::vector<Knob<Owner>> shared = embedding_knobs<Owner>();
  knobs.insert(knobs.end(), shared.begin(), shared.end());
  if (bidirectional)
    knobs.push_back(real_knob<Owner>("mask_probability", "of each item of a training history, of backbone bert4rec",
                                     GAINLENS_MEMBER(mask_probability), {0, 1, false}));
  return knobs;
}

#undef GAINLENS_MEMBER

/// The keys of the object 'foreign' of config.json.
std::span<const Knob<ForeignParts>> foreign_knobs() {
  using Owner = ForeignParts;
  static const std::vector<Knob<Owner>> knobs = {
      choice_knob<Owner>(
          "activation", "of the MLP", {"gelu", "relu", "silu"},
          [](Owner & owner) -> auto& { return owner.activation; }),
      choice_knob<Owner>(
          "norm", "what norms there are besides", {"none", "last", "queries"},
          [](Owner & owner) -> auto& { return owner.norm; }),
      choice_knob<Owner>(
          "padding", "in front of short histories", {"none", "seen", "zeroed"},
          [](Owner & owner) -> auto& { return owner.padding; })};
  return knobs;
}

void read_foreign(models::ConfigReader& reader, SasRecConfig& config) {
  const Json* foreign = reader.find("foreign");
  if (foreign == nullptr) return;
  CHECK(foreign->is_object(), "{}: 'foreign' is {}; must be an object", reader.where(), printable(foreign->dump(), 60));
  read_knobs(foreign_knobs(), config.foreign, *foreign, reader.where() + ": 'foreign'");
}

}  // namespace

void check(const SasRecConfig& config, const std::string& where) {
  check_shape(config, where);
  CHECK(!config.bidirectional || config.positions > 1,
        "{}: 'positions' is 1; one position of {} is that of the mask, so it must be at least 2", where,
        sasrec_name(true));
  CHECK(config.arm != Arm::ffn,
        "{}: arm ffn is for a backbone without an MLP; backbone {} has one in every layer: its arm plain", where,
        sasrec_name(config.bidirectional));
  const bool padded = config.foreign.padding != ForeignParts::Padding::none;
  CHECK(config.foreign == ForeignParts{} || (config.arm == Arm::plain && !config.bidirectional),
        "{}: 'foreign' is for plain models of {}", where, sasrec_name(false));
  CHECK(config.foreign.norm == ForeignParts::Norm::none || config.norm == NormPlace::post,
        "{}: 'foreign.norm' is one besides norms after the sums, and 'norm' is pre", where);
  CHECK(!padded || (config.alignment == Alignment::end && config.positions > 1),
        "{}: 'foreign.padding' stands in front, so 'alignment' must be end, and 'positions' at least 2", where);
  if (config.arm == Arm::plain) return;
  bft::check(config.filter, where);
  CHECK(config.filter.initial_precision != bft::InitialPrecision::em ||
            !config.armed_filter().has_initial_precision() || config.armed_filter().has_gain(),
        "{}: 'initial_precision' is em; arm {} has no gain, from whose innovations em would learn", where,
        name_of(config.arm));
  CHECK(config.norm == NormPlace::pre || !config.filter.norm_jacobian,
        "{}: 'norm' is post, and 'norm_jacobian' is true; with norms after the sums the MLP reads the stream itself",
        where);
}

std::string sasrec_name(bool bidirectional) {
  return bidirectional ? "bert4rec" : "sasrec";
}

std::span<const Knob<SasRecConfig>> sasrec_knobs(bool bidirectional) {
  static const std::vector<Knob<SasRecConfig>> causal = make_knobs(false), both = make_knobs(true);
  return bidirectional ? both : causal;
}

OrderedJson to_json(const SasRecConfig& config) {
  OrderedJson document = {{"model_type", model_type_of(sasrec_name(config.bidirectional))}, {"items", config.items}};
  document.update(knobs_to_json(sasrec_knobs(config.bidirectional), config));
  document["activation"] = "gelu";
  if (config.foreign != ForeignParts{}) document["foreign"] = knobs_to_json(foreign_knobs(), config.foreign);
  write_arm(document, config.arm, config.filter);
  return document;
}

SasRecConfig parse_sasrec_config(const Json& document, const std::string& where, bool bidirectional) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  SasRecConfig config;
  config.bidirectional = bidirectional;
  models::ConfigReader reader(document, where);
  expect_text(reader, "model_type", model_type_of(sasrec_name(bidirectional)));
  config.items = reader.integer("items", 1, most);
  Json options = Json::object();
  for (const Knob<SasRecConfig>& knob : sasrec_knobs(bidirectional)) {
    if (const Json* value = reader.find(knob.key)) options[knob.key] = *value;
  }
  read_knobs(sasrec_knobs(bidirectional), config, options, where);
  expect_text(reader, "activation", "gelu");
  read_arm(reader, config.arm, config.filter);
  read_foreign(reader, config);
  check_all_read(reader);
  check(config, where);
  return config;
}

}  // namespace gainlens::recommend
