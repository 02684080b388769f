#pragma once

#include "core/error.h"
#include "core/json.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Settings that can be chosen by key: each is read, checked and written at one place.

namespace gainlens {

/// A member of `Owner` with its key, its help, and its access as JSON.
template <typename Owner>
struct Knob {
  std::string key;  ///< of a --config file; as an option with hyphens: learning_rate is --learning-rate
  std::string help;
  std::function<Json(const Owner&)> get;
  /// @throws InvalidArgument  a value of the wrong type or out of range; the message begins with `what`
  std::function<void(Owner&, const Json&, const std::string& what)> set;
  /// What a stored file means that does not have the key: the value that held before the option existed. It never
  /// changes, also if the default does. Null: every file has the key, and one without it is refused.
  Json absent = nullptr;

  /// The same knob, whose key stored files may lack.
  Knob absent_is(const Json& value) const {
    Knob knob = *this;
    knob.absent = value;
    return knob;
  }
};

/// A number in [least, below), or above `least` if it is excluded.
struct NumberRange {
  double least = 0;
  double below = std::numeric_limits<double>::infinity();
  bool min_allowed = true;
};

/// @param member  gives a reference to an std::int64_t of an Owner&
template <typename Owner, typename Member>
Knob<Owner> whole_knob(const char* key, const char* help, Member member, std::int64_t least) {
  return {key, help, [member](const Owner& owner) { return Json(member(const_cast<Owner&>(owner))); },
          [member, least](Owner& owner, const Json& value, const std::string& what) {
            const bool fits = value.is_number_integer() &&
                              (!value.is_number_unsigned() ||
                               value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
            if (!fits) throw_invalid("{} is {}; must be a whole number below 2^63", what, printable(value.dump(), 60));
            const auto number = value.get<std::int64_t>();
            if (number < least) throw_invalid("{} is {}; must be at least {}", what, number, least);
            member(owner) = number;
          }};
}

/// @param member  gives a reference to a double of an Owner&
template <typename Owner, typename Member>
Knob<Owner> real_knob(const char* key, const char* help, Member member, NumberRange range) {
  return {key, help, [member](const Owner& owner) { return Json(member(const_cast<Owner&>(owner))); },
          [member, range](Owner& owner, const Json& value, const std::string& what) {
            if (!value.is_number()) throw_invalid("{} is {}; must be a number", what, printable(value.dump(), 60));
            const auto number = value.get<double>();
            const bool enough = range.min_allowed ? number >= range.least : number > range.least;
            if (!(std::isfinite(number) && enough && number < range.below))
              throw_invalid("{} is {}; must be {} {}{}", what, number, range.min_allowed ? "at least" : "above",
                            range.least, std::isfinite(range.below) ? fmt::format(" and below {}", range.below) : "");
            member(owner) = number;
          }};
}

/// @param help    the names are added to it if it does not tell them
/// @param names   of the values of an enumeration, the first for value 0
/// @param member  gives a reference to a value of an Owner&
template <typename Owner, typename Member>
Knob<Owner> choice_knob(const char* key, const char* help, std::vector<std::string> names, Member member) {
  std::string text = help;
  if (text.find(names.front()) == std::string::npos) text += fmt::format(": {}", fmt::join(names, ", "));
  return {key, text,
          [member, names](const Owner& owner) {
            return Json(names.at(static_cast<std::size_t>(member(const_cast<Owner&>(owner)))));
          },
          [member, names](Owner& owner, const Json& value, const std::string& what) {
            using Value = std::remove_reference_t<decltype(member(owner))>;
            for (std::size_t i = 0; i < names.size(); ++i) {
              if (value != names[i]) continue;
              member(owner) = static_cast<Value>(i);
              return;
            }
            const std::string given = value.is_string() ? value.get<std::string>() : "";
            throw_invalid("{} is {}; must be {}{}", what, printable(value.dump(), 60), fmt::join(names, " or "),
                          did_you_mean(given, names));
          }};
}

/// @param member  gives a reference to a bool of an Owner&
template <typename Owner, typename Member>
Knob<Owner> flag_knob(const char* key, const char* help, Member member) {
  return {key, help, [member](const Owner& owner) { return Json(bool{member(const_cast<Owner&>(owner))}); },
          [member](Owner& owner, const Json& value, const std::string& what) {
            if (!value.is_boolean())
              throw_invalid("{} is {}; must be true or false", what, printable(value.dump(), 60));
            member(owner) = value.get<bool>();
          }};
}

/// The knobs of a part of an Owner as knobs of the Owner.
template <typename Owner, typename Part, typename Member>
std::vector<Knob<Owner>> knobs_of_part(std::span<const Knob<Part>> knobs, Member member) {
  std::vector<Knob<Owner>> found;
  found.reserve(knobs.size());
  for (const Knob<Part>& knob : knobs) {
    found.push_back({knob.key, knob.help,
                     [get = knob.get, member](const Owner& owner) { return get(member(const_cast<Owner&>(owner))); },
                     [set = knob.set, member](Owner& owner, const Json& value, const std::string& what) {
                       set(member(owner), value, what);
                     },
                     knob.absent});
  }
  return found;
}

/// All knobs with their values, in the order of the knobs.
template <typename Owner>
OrderedJson knobs_to_json(std::span<const Knob<Owner>> knobs, const Owner& owner) {
  OrderedJson document = OrderedJson::object();
  for (const Knob<Owner>& knob : knobs) document[knob.key] = knob.get(owner);
  return document;
}

/// Sets the given keys.
/// @param where  names the source of the keys in messages
/// @throws InvalidArgument  no object; a key is unknown (nearest match named), of the wrong type or out of range
template <typename Owner>
void set_knobs(std::span<const Knob<Owner>> knobs, Owner& owner, const Json& changes, const std::string& where) {
  if (!changes.is_object()) throw_invalid("{}: {}; must be an object", where, changes.type_name());
  for (const auto& [key, value] : changes.items()) {
    const Knob<Owner>* found = nullptr;
    std::vector<std::string> names;
    names.reserve(knobs.size());
    for (const Knob<Owner>& knob : knobs) {
      names.push_back(knob.key);
      if (knob.key == key) found = &knob;
    }
    if (found == nullptr)
      throw_invalid("{}: '{}' is not a known key{}", where, printable(key, 60), did_you_mean(key, names));
    found->set(owner, value, fmt::format("{}: '{}'", where, key));
  }
}

/// What keys that no option has mean in a stored file.
inline std::string made_by_newer_version(const std::vector<std::string>& unknown) {
  return fmt::format("made by a newer version of gainlens; unknown keys: {}",
                     printable(fmt::format("{}", fmt::join(unknown, ", ")), 200));
}

/// The keys that a stored file may lack, with what it then means.
template <typename Owner>
Json absent_values(std::span<const Knob<Owner>> knobs) {
  Json values = Json::object();
  for (const Knob<Owner>& knob : knobs) {
    if (!knob.absent.is_null()) values[knob.key] = knob.absent;
  }
  return values;
}

/// Sets every knob to what a stored file says. A key that the file does not have means the value that held before the
/// option existed.
/// @param where  names the file in messages
/// @throws InvalidArgument  no object; keys are unknown (all are named: a newer version made the file); a key is
///     missing that every version writes; a value is of the wrong type or out of range
template <typename Owner>
void read_knobs(std::span<const Knob<Owner>> knobs, Owner& owner, const Json& stored, const std::string& where) {
  if (!stored.is_object()) throw_invalid("{}: is {}; must be an object", where, printable(stored.dump(), 60));
  Json complete = absent_values(knobs);
  std::vector<std::string> unknown;
  for (const auto& entry : stored.items()) {
    const auto is_its = [&](const Knob<Owner>& knob) { return knob.key == entry.key(); };
    if (std::none_of(knobs.begin(), knobs.end(), is_its)) unknown.push_back(entry.key());
    complete[entry.key()] = entry.value();
  }
  if (!unknown.empty()) throw_invalid("{}: {}", where, made_by_newer_version(unknown));
  for (const Knob<Owner>& knob : knobs)
    if (!complete.contains(knob.key)) throw_invalid("{}: '{}' is missing", where, knob.key);
  set_knobs(knobs, owner, complete, where);
}

}  // namespace gainlens
