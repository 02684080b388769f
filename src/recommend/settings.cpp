#include "recommend/settings.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

namespace gainlens::recommend {
namespace {

/// The names of an enum's values, the first for value 0.
template <typename Value>
struct Names {
  std::vector<std::string> names;

  std::string of(Value value) const { return names[static_cast<std::size_t>(value)]; }
};
const Names<NormPlace> norm_names{{"pre", "post"}};
const Names<Alignment> alignment_names{{"end", "start"}};
const Names<LossKind> loss_names{{"full", "sampled"}};

/// A knob with its access to the settings.
struct Access {
  Knob knob;
  std::function<Json(const Settings&)> get;
  /// @throws InvalidArgument  a value of the wrong type or out of range; the message begins with `what`
  std::function<void(Settings&, const Json&, const std::string& what)> set;
};

template <typename Member>
Access whole(const char* key, const char* help, Member member, std::int64_t least) {
  return {{key, help},
          [member](const Settings& settings) { return Json(member(const_cast<Settings&>(settings))); },
          [member, least](Settings& settings, const Json& value, const std::string& what) {
            const bool fits = value.is_number_integer() &&
                              (!value.is_number_unsigned() ||
                               value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
            CHECK(fits, "{} is {}; must be a whole number below 2^63", what, printable(value.dump(), 60));
            const auto number = value.get<std::int64_t>();
            CHECK(number >= least, "{} is {}; must be at least {}", what, number, least);
            member(settings) = number;
          }};
}

/// A number in [least, below), or above `least` if it is excluded.
struct Range {
  double least = 0;
  double below = std::numeric_limits<double>::infinity();
  bool least_allowed = true;
};

template <typename Member>
Access real(const char* key, const char* help, Member member, Range range) {
  return {{key, help},
          [member](const Settings& settings) { return Json(member(const_cast<Settings&>(settings))); },
          [member, range](Settings& settings, const Json& value, const std::string& what) {
            CHECK(value.is_number(), "{} is {}; must be a number", what, printable(value.dump(), 60));
            const auto number = value.get<double>();
            const bool enough = range.least_allowed ? number >= range.least : number > range.least;
            CHECK(std::isfinite(number) && enough && number < range.below, "{} is {}; must be {} {}{}", what, number,
                  range.least_allowed ? "at least" : "above", range.least,
                  std::isfinite(range.below) ? fmt::format(" and below {}", range.below) : "");
            member(settings) = number;
          }};
}

template <typename Value, typename Member>
Access choice(const char* key, const char* help, const Names<Value>& names, Member member) {
  return {
      {key, help},
      [member, &names](const Settings& settings) { return Json(names.of(member(const_cast<Settings&>(settings)))); },
      [member, &names](Settings& settings, const Json& value, const std::string& what) {
        for (std::size_t i = 0; i < names.names.size(); ++i) {
          if (value != names.names[i]) continue;
          member(settings) = static_cast<Value>(i);
          return;
        }
        throw_invalid("{} is {}; must be {}", what, printable(value.dump(), 60), fmt::join(names.names, " or "));
      }};
}

Access flag(const char* key, const char* help, bool SasRecConfig::*member) {
  return {{key, help},
          [member](const Settings& settings) { return Json(settings.model.*member); },
          [member](Settings& settings, const Json& value, const std::string& what) {
            CHECK(value.is_boolean(), "{} is {}; must be true or false", what, printable(value.dump(), 60));
            settings.model.*member = value.get<bool>();
          }};
}

#define GAINLENS_MEMBER(name) ([](Settings & settings) -> auto& { return settings.name; })

std::vector<Access> make_accesses() {
  return {
      whole("width", "of the residual stream", GAINLENS_MEMBER(model.width), 1),
      whole("heads", "attention heads; must divide the width", GAINLENS_MEMBER(model.heads), 1),
      whole("layers", "layers", GAINLENS_MEMBER(model.layers), 1),
      whole("inner_width", "neurons of the MLP", GAINLENS_MEMBER(model.inner_width), 1),
      whole("positions", "items of a history that the model sees, the last ones", GAINLENS_MEMBER(model.positions), 1),
      choice("norm", "norms before each part (pre) or after each sum (post)", norm_names, GAINLENS_MEMBER(model.norm)),
      flag("embedding_norm", "a norm after the embeddings", &SasRecConfig::embedding_norm),
      real("norm_epsilon", "added to the variance in norms", GAINLENS_MEMBER(model.norm_epsilon), {0, 1, false}),
      choice("alignment", "the last item (end) or the first (start) has a fixed position", alignment_names,
             GAINLENS_MEMBER(model.alignment)),
      real("dropout", "of the embeddings and of what each part adds", GAINLENS_MEMBER(dropout), {0, 1}),
      real("attention_dropout", "of the attention weights", GAINLENS_MEMBER(attention_dropout), {0, 1}),
      choice("loss", "cross-entropy over all items (full), or over sampled ones with log-Q correction (sampled)",
             loss_names, GAINLENS_MEMBER(loss)),
      whole("negatives", "items drawn for each step; loss sampled", GAINLENS_MEMBER(negatives), 1),
      real("negative_exponent", "items are drawn in proportion to (training count)^this; loss sampled",
           GAINLENS_MEMBER(negative_exponent), {0, 10}),
      real("learning_rate", "of Adam", GAINLENS_MEMBER(learning_rate), {0, 1e6, false}),
      real("beta2", "of Adam", GAINLENS_MEMBER(beta2), {0, 1}),
      real("weight_decay", "of matrices and embeddings, decoupled", GAINLENS_MEMBER(weight_decay), {0, 1e6}),
      real("max_gradient_norm", "larger gradients are scaled down to it; 0: never", GAINLENS_MEMBER(max_gradient_norm),
           {}),
      whole("batch", "users of a step", GAINLENS_MEMBER(batch), 1),
      whole("epochs", "at most", GAINLENS_MEMBER(epochs), 1),
      whole("patience", "epochs without a better validation NDCG@10 before training stops; 0: never",
            GAINLENS_MEMBER(patience), 0),
      whole("save_every", "epochs between saved states", GAINLENS_MEMBER(save_every), 1),
  };
}

#undef GAINLENS_MEMBER

const std::vector<Access>& accesses() {
  static const std::vector<Access> made = make_accesses();
  return made;
}

}  // namespace

const std::vector<Knob>& knobs() {
  static const std::vector<Knob> made = [] {
    std::vector<Knob> found;
    for (const Access& access : accesses()) found.push_back(access.knob);
    return found;
  }();
  return made;
}

OrderedJson to_json(const Settings& settings) {
  OrderedJson document;
  for (const Access& access : accesses()) document[access.knob.key] = access.get(settings);
  return document;
}

namespace {

/// The defaults with the given keys changed; whether the values fit each other is not checked.
Settings changed(const Json& changes, const std::string& where) {
  CHECK(changes.is_object(), "{}: {}; must be an object", where, changes.type_name());
  Settings settings;
  for (const auto& [key, value] : changes.items()) {
    const Access* found = nullptr;
    std::vector<std::string> names;
    for (const Access& access : accesses()) {
      names.push_back(access.knob.key);
      if (access.knob.key == key) found = &access;
    }
    CHECK(found != nullptr, "{}: '{}' is not a known key{}", where, printable(key, 60), did_you_mean(key, names));
    found->set(settings, value, fmt::format("{}: '{}'", where, key));
  }
  return settings;
}

}  // namespace

void check_settings(const Json& changes, const std::string& where) {
  changed(changes, where);
}

Settings settings_of(const Json& changes, const std::string& where) {
  const Settings settings = changed(changes, where);
  SasRecConfig model = settings.model;
  model.items = 1;
  check(model, where);
  return settings;
}

Json preset(std::string_view name) {
  if (name == "paper") return Json::object();
  const std::vector<std::string> names = {"paper"};
  throw_invalid("--preset: '{}'; must be paper{}", printable(name, 60), did_you_mean(name, names));
}

}  // namespace gainlens::recommend
