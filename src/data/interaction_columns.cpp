#include "data/interaction_columns.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/plain_text.h"
#include "data/time_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

namespace gainlens::data {
namespace {

constexpr std::size_t max_shown = 12;  ///< names in a message

/// A value of an interaction, and the names that its column often has, in lower case without underscores.
struct Role {
  const char* holds;
  const char* option;
  std::span<const std::string_view> common;
  const char* examples;
};
constexpr std::array<std::string_view, 5> user_names = {"user", "userid", "uid", "reviewerid", "customerid"};
constexpr std::array<std::string_view, 9> item_names = {"item",    "itemid",  "movieid", "productid", "bookid",
                                                        "videoid", "trackid", "asin",    "parentasin"};
constexpr std::array<std::string_view, 7> time_names = {"timestamp", "time",          "datetime",      "date",
                                                        "ts",        "unixtimestamp", "unixreviewtime"};
constexpr Role user_role = {"users", "--user-column", user_names, "such as user_id"};
constexpr Role item_role = {"items", "--item-column", item_names, "such as item_id"};
constexpr Role time_role = {"times", "--time-column", time_names, "such as timestamp"};

/// "userId" and "user_id" as "userid".
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : ascii_lower(name)) {
    if (c != '_' && c != '-' && c != ' ') plain += c;
  }
  return plain;
}

class Finder {
 public:
  Finder(const std::vector<std::string>& names, const ColumnKind& kind, std::string_view where)
      : names_(names), kind_(kind), where_(where) {}

  /// The column of this name.
  std::size_t named(const Role& role, const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    CHECK(found != names_.end(), "{}: has no {} '{}' ({}); {}{}", where_, kind_.one, printable(name, 60), role.option,
          list(), did_you_mean(name, names_));
    CHECK(std::find(found + 1, names_.end(), name) == names_.end(), "{}: has the {} '{}' twice ({}); rename one",
          where_, kind_.one, printable(name, 60), role.option);
    return static_cast<std::size_t>(found - names_.begin());
  }

  /// The columns with a common name.
  std::vector<std::size_t> recognised(const Role& role) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (std::find(role.common.begin(), role.common.end(), plain_name(names_[i])) != role.common.end())
        found.push_back(i);
    }
    return found;
  }

  std::size_t find(const Role& role, const std::string& name) const {
    if (!name.empty()) return named(role, name);
    const auto found = recognised(role);
    CHECK(!found.empty(), "{}: no {} has a known name for {}, {}; name it with {}; {}{}", where_, kind_.one, role.holds,
          role.examples, role.option, list(), without_header());
    refuse_several(role, found);
    return found.front();
  }

  std::optional<std::size_t> find_time(const ColumnOptions& options) const {
    if (options.time == no_times) {
      CHECK(std::find(names_.begin(), names_.end(), no_times) == names_.end(),
            "{}: has a {} '{}', which --time-column cannot name; rename it", where_, kind_.one, no_times);
      return std::nullopt;
    }
    if (!options.time.empty()) return named(time_role, options.time);
    const auto found = recognised(time_role);
    refuse_several(time_role, found);
    if (!found.empty()) return found.front();
    CHECK(names_.size() == 2,  // those of users and items
          "{}: no {} has a known name for times, such as timestamp; name it with --time-column, or give --time-column "
          "{} if the order of the {} is the order in time; {}",
          where_, kind_.one, no_times, kind_.records, list());
    return std::nullopt;
  }

  void refuse_shared(const Role& one, std::size_t place, const Role& other, std::size_t other_place) const {
    CHECK(place != other_place, "{}: the {} '{}' cannot hold {} and {}; give {} and {}", where_, kind_.one,
          printable(names_[place], 60), one.holds, other.holds, one.option, other.option);
  }

 private:
  std::string list() const {
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(names_.size(), max_shown); ++i) shown.push_back(printable(names_[i], 40));
    return fmt::format("its {} are {}{}", kind_.several, fmt::join(shown, ", "),
                       names_.size() > max_shown ? fmt::format(" and {} more", names_.size() - max_shown) : "");
  }
  void refuse_several(const Role& role, const std::vector<std::size_t>& found) const {
    if (found.size() < 2) return;
    std::vector<std::string> shown;
    shown.reserve(found.size());
    for (const std::size_t place : found) shown.push_back(printable(names_[place], 40));
    throw_invalid("{}: the {} {} could all hold {}; name one with {}", where_, kind_.several, fmt::join(shown, ", "),
                  role.holds, role.option);
  }
  /// A number is no name: it stands where a first line is no header.
  std::string without_header() const {
    const bool number = std::any_of(names_.begin(), names_.end(),
                                    [](const std::string& name) { return finite_number(name).has_value(); });
    return number && kind_.may_lack_header ? "; if the first line is no header, give --no-header" : "";
  }

  const std::vector<std::string>& names_;
  const ColumnKind& kind_;
  std::string_view where_;
};

}  // namespace

ColumnPlaces find_columns(const std::vector<std::string>& names, const ColumnOptions& options, const ColumnKind& kind,
                          std::string_view where) {
  const Finder finder(names, kind, where);
  ColumnPlaces places;
  places.user = finder.find(user_role, options.user);
  places.item = finder.find(item_role, options.item);
  finder.refuse_shared(user_role, places.user, item_role, places.item);
  places.time = finder.find_time(options);
  if (!places.time) return places;
  finder.refuse_shared(user_role, places.user, time_role, *places.time);
  finder.refuse_shared(item_role, places.item, time_role, *places.time);
  return places;
}

}  // namespace gainlens::data
