#include "recommend/sasrec_config.h"

#include "core/check.h"
#include "core/knobs.h"
#include "models/families/config_reader.h"
#include "recommend/recommender_files.h"

#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::recommend {
namespace {

#define GAINLENS_MEMBER(name) ([](SasRecConfig & config) -> auto& { return config.name; })

std::vector<Knob<SasRecConfig>> make_knobs(bool bidirectional) {
  using Owner = SasRecConfig;
  std::vector<Knob<Owner>> knobs = {
      whole_knob<Owner>("width", "of the residual stream", GAINLENS_MEMBER(width), 1),
      whole_knob<Owner>("heads", "attention heads; must divide the width", GAINLENS_MEMBER(heads), 1),
      whole_knob<Owner>("layers", "layers", GAINLENS_MEMBER(layers), 1),
      whole_knob<Owner>("inner_width", "neurons of the MLP", GAINLENS_MEMBER(inner_width), 1),
      whole_knob<Owner>("positions", "items of a history that the model sees, the last ones",
                        GAINLENS_MEMBER(positions), 1),
      choice_knob<Owner>("norm", "norms before each part (pre) or after each sum (post)", {"pre", "post"},
                         GAINLENS_MEMBER(norm)),
      choice_knob<Owner>("embedding_factor",
                         "an item's embedding is taken as it is (one) or times the root of the width",
                         {"one", "sqrt_width"}, GAINLENS_MEMBER(embedding_factor))
          .absent_is("one"),
      real_knob<Owner>("embedding_deviation", "of the embeddings before training", GAINLENS_MEMBER(embedding_deviation),
                       {0, 1e6, false})
          .absent_is(0.02),
      flag_knob<Owner>("embedding_norm", "a norm after the embeddings", GAINLENS_MEMBER(embedding_norm)),
      real_knob<Owner>("norm_epsilon", "added to the variance in norms", GAINLENS_MEMBER(norm_epsilon), {1e-15, 1}),
      choice_knob<Owner>("alignment", "the last item (end) or the first (start) has a fixed position", {"end", "start"},
                         GAINLENS_MEMBER(alignment)),
  };
  if (bidirectional)
    knobs.push_back(real_knob<Owner>("mask_probability", "of each item of a training history, of backbone bert4rec",
                                     GAINLENS_MEMBER(mask_probability), {0, 1, false}));
  return knobs;
}

#undef GAINLENS_MEMBER

/// The arm with the options of its filter; without the key it is a plain SASRec.
void read_arm(models::ConfigReader& reader, SasRecConfig& config) {
  const Json *arm = reader.find("arm"), *filter = reader.find("filter");
  if (arm == nullptr && filter == nullptr) return;
  CHECK(arm != nullptr, "{}: 'filter' is given without 'arm', the name of the arm that reads it", reader.where());
  CHECK(filter != nullptr, "{}: 'arm' is given without 'filter', the options of its filter", reader.where());
  CHECK(arm->is_string(), "{}: 'arm' is {}; must be a name", reader.where(), printable(arm->dump(), 60));
  CHECK(filter->is_object(), "{}: 'filter' is {}; must be an object", reader.where(), printable(filter->dump(), 60));
  const ArmParts* parts = find_arm(arm->get<std::string>());
  std::vector<std::string> names;
  for (const ArmParts& known : all_arms()) names.emplace_back(known.name);
  CHECK(parts != nullptr, "{}: 'arm' is {}; must be one of {}{}", reader.where(), printable(arm->dump(), 60),
        fmt::join(names, ", "), did_you_mean(arm->get<std::string>(), names));
  config.arm = parts->arm;
  const std::string where = reader.where() + ": 'filter'";
  read_knobs(bft::filter_knobs(), config.filter, *filter, where);
}

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

void expect(models::ConfigReader& reader, const std::string& key, const std::string& only) {
  const std::string text = reader.text(key);
  CHECK(text == only, "{}: '{}' is '{}'; must be '{}'", reader.where(), key, printable(text, 60), only);
}

}  // namespace

void check(const SasRecConfig& config, const std::string& where) {
  const auto in_range = [&](const char* key, std::int64_t value, std::int64_t most) {
    CHECK(value >= 1 && value <= most, "{}: '{}' is {}; must be 1 to {}", where, key, value, most);
  };
  in_range("items", config.items, most_items);
  in_range("width", config.width, 16384);
  in_range("heads", config.heads, 1024);
  in_range("layers", config.layers, 1024);
  in_range("inner_width", config.inner_width, 262144);
  in_range("positions", config.positions, 1 << 20);
  CHECK(!config.bidirectional || config.positions > 1,
        "{}: 'positions' is 1; one position of {} is that of the mask, so it must be at least 2", where,
        sasrec_name(true));
  CHECK(config.width % config.heads == 0, "{}: 'width' is {} and 'heads' is {}; heads must divide the width", where,
        config.width, config.heads);
  CHECK(std::isfinite(config.norm_epsilon) && config.norm_epsilon > 0, "{}: 'norm_epsilon' is {}; must be positive",
        where, config.norm_epsilon);
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
  if (config.arm != Arm::plain) {
    document["arm"] = name_of(config.arm);
    document["filter"] = knobs_to_json(bft::filter_knobs(), config.filter);
  }
  return document;
}

SasRecConfig parse_sasrec_config(const Json& document, const std::string& where, bool bidirectional) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  SasRecConfig config;
  config.bidirectional = bidirectional;
  models::ConfigReader reader(document, where);
  expect(reader, "model_type", model_type_of(sasrec_name(bidirectional)));
  config.items = reader.integer("items", 1, most);
  Json options = Json::object();
  for (const Knob<SasRecConfig>& knob : sasrec_knobs(bidirectional)) {
    if (const Json* value = reader.find(knob.key)) options[knob.key] = *value;
  }
  read_knobs(sasrec_knobs(bidirectional), config, options, where);
  expect(reader, "activation", "gelu");
  read_arm(reader, config);
  read_foreign(reader, config);
  std::vector<std::string> unknown = reader.unread();
  std::erase(unknown, "data");  // of which split it was trained, see recommender_checkpoint.h
  CHECK(unknown.empty(), "{}: {}", where, made_by_newer_version(unknown));
  check(config, where);
  return config;
}

}  // namespace gainlens::recommend
