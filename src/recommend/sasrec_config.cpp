#include "recommend/sasrec_config.h"

#include "core/check.h"
#include "core/knobs.h"
#include "models/families/config_reader.h"

#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::recommend {
namespace {

template <typename Value>
struct Choice {
  const char* name;
  Value value;
};
constexpr Choice<NormPlace> norm_places[] = {{"pre", NormPlace::pre}, {"post", NormPlace::post}};
constexpr Choice<Alignment> alignments[] = {{"end", Alignment::end}, {"start", Alignment::start}};

template <typename Value, std::size_t count>
const char* name_of(const Choice<Value> (&choices)[count], Value value) {
  for (const auto& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  ASSERT(false, "a choice without a name");
  return "";
}

/// @throws InvalidArgument  the key holds no name of a choice
template <typename Value, std::size_t count>
Value read_choice(models::ConfigReader& reader, const std::string& key, const Choice<Value> (&choices)[count]) {
  const std::string name = reader.text(key);
  std::vector<std::string> names;
  for (const auto& choice : choices) {
    if (name == choice.name) return choice.value;
    names.emplace_back(choice.name);
  }
  throw_invalid("{}: '{}' is '{}'; must be {}", reader.where(), key, printable(name, 60), fmt::join(names, " or "));
}

/// The arm with the options of its filter; without the key it is a plain SASRec.
void read_arm(models::ConfigReader& reader, SasRecConfig& config) {
  const Json *arm = reader.find("arm"), *filter = reader.find("filter");
  if (arm == nullptr && filter == nullptr) return;
  CHECK(arm != nullptr && filter != nullptr && arm->is_string() && filter->is_object(),
        "{}: 'arm' must be a name, and 'filter' beside it an object", reader.where());
  const ArmParts* parts = find_arm(arm->get<std::string>());
  CHECK(parts != nullptr, "{}: 'arm' is {}; no arm that is trained has this name", reader.where(),
        printable(arm->dump(), 60));
  config.arm = parts->arm;
  const std::string where = reader.where() + ": 'filter'";
  for (const Knob<bft::FilterOptions>& knob : bft::filter_knobs())
    CHECK(filter->contains(knob.key), "{}: '{}' is missing", where, knob.key);
  set_knobs(bft::filter_knobs(), config.filter, *filter, where);
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
  in_range("items", config.items, (std::int64_t{1} << 31) - 2);
  in_range("width", config.width, 16384);
  in_range("heads", config.heads, 1024);
  in_range("layers", config.layers, 1024);
  in_range("inner_width", config.inner_width, 262144);
  in_range("positions", config.positions, 1 << 20);
  CHECK(config.width % config.heads == 0, "{}: 'width' is {} and 'heads' is {}; heads must divide the width", where,
        config.width, config.heads);
  CHECK(std::isfinite(config.norm_epsilon) && config.norm_epsilon > 0, "{}: 'norm_epsilon' is {}; must be positive",
        where, config.norm_epsilon);
  if (config.arm == Arm::plain) return;
  bft::check(config.filter, where);
  CHECK(config.filter.initial_precision != bft::InitialPrecision::em ||
            !config.armed_filter().has_initial_precision() || config.armed_filter().has_gain(),
        "{}: 'initial_precision' is em; arm {} has no gain, from whose innovations em would learn", where,
        name_of(config.arm));
  CHECK(config.norm == NormPlace::pre || config.armed_filter().parts().factor == AttentionFactor::one,
        "{}: 'norm' is post; arm {} needs norms before each part (pre)", where, name_of(config.arm));
}

bool is_sasrec(const std::filesystem::path& path) {
  try {
    const std::filesystem::path file = path / "config.json";
    if (!std::filesystem::exists(file)) return false;
    const Json document = read_json_file(file);
    return document.is_object() && document.contains("model_type") && document["model_type"] == sasrec_model_type;
  } catch (const InvalidArgument&) {
    return false;
  }
}

OrderedJson to_json(const SasRecConfig& config) {
  OrderedJson document = {{"model_type", sasrec_model_type},
                          {"items", config.items},
                          {"width", config.width},
                          {"heads", config.heads},
                          {"layers", config.layers},
                          {"inner_width", config.inner_width},
                          {"positions", config.positions},
                          {"norm", name_of(norm_places, config.norm)},
                          {"embedding_norm", config.embedding_norm},
                          {"norm_epsilon", config.norm_epsilon},
                          {"alignment", name_of(alignments, config.alignment)},
                          {"activation", "gelu"}};
  if (config.arm != Arm::plain) {
    document["arm"] = name_of(config.arm);
    document["filter"] = knobs_to_json(bft::filter_knobs(), config.filter);
  }
  return document;
}

SasRecConfig parse_sasrec_config(const Json& document, const std::string& where) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  SasRecConfig config;
  models::ConfigReader reader(document, where);
  expect(reader, "model_type", sasrec_model_type);
  config.items = reader.integer("items", 1, most);
  config.width = reader.integer("width", 1, most);
  config.heads = reader.integer("heads", 1, most);
  config.layers = reader.integer("layers", 1, most);
  config.inner_width = reader.integer("inner_width", 1, most);
  config.positions = reader.integer("positions", 1, most);
  config.norm = read_choice(reader, "norm", norm_places);
  const Json* embedding_norm = reader.find("embedding_norm");
  CHECK(embedding_norm != nullptr && embedding_norm->is_boolean(), "{}: 'embedding_norm' must be true or false", where);
  config.embedding_norm = embedding_norm->get<bool>();
  config.norm_epsilon = reader.number("norm_epsilon", 0, 1);
  config.alignment = read_choice(reader, "alignment", alignments);
  expect(reader, "activation", "gelu");
  read_arm(reader, config);
  constexpr std::string_view inert[] = {"data"};
  reader.refuse_unread(inert);
  check(config, where);
  return config;
}

}  // namespace gainlens::recommend
