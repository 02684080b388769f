#include "recommend/sasrec_config.h"

#include "core/check.h"
#include "core/nearest.h"

#include <cmath>
#include <initializer_list>
#include <utility>
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

/// Reads the keys of config.json one by one, and then refuses the others.
class Keys {
 public:
  Keys(const Json& document, const std::string& where) : document_(document), where_(where) {
    CHECK(document.is_object(), "{}: {}; must be an object", where, document.type_name());
  }

  const Json& at(const std::string& key) {
    known_.push_back(key);
    CHECK(document_.contains(key), "{}: '{}' is missing", where_, key);
    return document_[key];
  }
  void read(const std::string& key, std::int64_t& to) {
    const Json& value = at(key);
    CHECK(value.is_number_integer(), "{}: '{}' is {}; must be a whole number", where_, key, shown(value));
    to = value.get<std::int64_t>();
  }
  void read(const std::string& key, double& to) {
    const Json& value = at(key);
    CHECK(value.is_number(), "{}: '{}' is {}; must be a number", where_, key, shown(value));
    to = value.get<double>();
  }
  void read(const std::string& key, bool& to) {
    const Json& value = at(key);
    CHECK(value.is_boolean(), "{}: '{}' is {}; must be true or false", where_, key, shown(value));
    to = value.get<bool>();
  }
  template <typename Value, std::size_t count>
  void read(const std::string& key, const Choice<Value> (&choices)[count], Value& to) {
    const Json& value = at(key);
    for (const auto& choice : choices) {
      if (value == choice.name) {
        to = choice.value;
        return;
      }
    }
    std::vector<std::string> names;
    for (const auto& choice : choices) names.emplace_back(choice.name);
    throw_invalid("{}: '{}' is {}; must be {}", where_, key, shown(value), fmt::join(names, " or "));
  }
  void expect(const std::string& key, const std::string& only) {
    const Json& value = at(key);
    CHECK(value == only, "{}: '{}' is {}; must be \"{}\"", where_, key, shown(value), only);
  }
  void refuse_others(std::initializer_list<std::string> ignored) {
    known_.insert(known_.end(), ignored);
    for (const auto& [key, value] : document_.items()) {
      CHECK(std::find(known_.begin(), known_.end(), key) != known_.end(), "{}: '{}' is not a known key{}", where_,
            printable(key, 60), did_you_mean(key, known_));
    }
  }

 private:
  static std::string shown(const Json& value) { return printable(value.dump(), 60); }

  const Json& document_;
  const std::string& where_;
  std::vector<std::string> known_;
};

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
}

OrderedJson to_json(const SasRecConfig& config) {
  return {{"model_type", sasrec_model_type},
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
}

SasRecConfig parse_sasrec_config(const Json& document, const std::string& where) {
  SasRecConfig config;
  Keys keys(document, where);
  keys.expect("model_type", sasrec_model_type);
  keys.read("items", config.items);
  keys.read("width", config.width);
  keys.read("heads", config.heads);
  keys.read("layers", config.layers);
  keys.read("inner_width", config.inner_width);
  keys.read("positions", config.positions);
  keys.read("norm", norm_places, config.norm);
  keys.read("embedding_norm", config.embedding_norm);
  keys.read("norm_epsilon", config.norm_epsilon);
  keys.read("alignment", alignments, config.alignment);
  keys.expect("activation", "gelu");
  keys.refuse_others({"data"});
  check(config, where);
  return config;
}

}  // namespace gainlens::recommend
