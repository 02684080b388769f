#include "data/interactions.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/random.h"
#include "core/sha256.h"
#include "data/delimited.h"
#include "data/item_names.h"
#include "data/parquet_interactions.h"
#include "data/raw_interactions.h"
#include "data/repeats.h"
#include "data/temporal_cut.h"
#include "formats/gzip.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace gainlens::data {
namespace {

constexpr std::uint64_t largest_data_set = std::uint64_t{16} << 30;
constexpr std::uint32_t dropped = std::numeric_limits<std::uint32_t>::max();  ///< in place of a new number

/// The users and items that are kept, and their new numbers.
struct Kept {
  std::vector<std::uint32_t> user;  ///< [number in the file]: number in the result, or `dropped`
  std::vector<ItemId> item;         ///< [number in the file]: item id, or 0
  std::vector<std::size_t> order;   ///< [number in the result]: number in the file
  std::int64_t users = 0;
  std::int64_t items = 0;
  std::int64_t untested = 0;  ///< of the users, the last ones
};

/// Interactions of a user who has no test: one to know and one to predict.
constexpr std::ptrdiff_t min_for_training = 2;

/// Gives the items that are used their ids in a catalogue.
/// @param used  [number in the file]
void find_in_catalogue(const RawInteractions& raw, const std::vector<bool>& used, const std::string& where,
                       const std::vector<std::string>& catalogue, Kept& kept) {
  std::unordered_map<std::string_view, ItemId> ids;
  for (std::size_t i = 0; i < catalogue.size(); ++i) ids.emplace(catalogue[i], static_cast<ItemId>(i + 1));
  std::vector<std::uint32_t> unknown;
  for (std::uint32_t item = 0; item < used.size(); ++item) {
    if (!used[item]) continue;
    const auto found = ids.find(raw.items[item]);
    if (found == ids.end())
      unknown.push_back(item);
    else
      kept.item[item] = found->second;
  }
  CHECK(unknown.empty(), "{}: the item '{}'{} not among the {} of the model; leave out the interactions with it", where,
        unknown.empty() ? "" : printable(raw.items[unknown.front()], 40),
        unknown.size() > 1 ? fmt::format(" and {} are", counted(unknown.size() - 1, "other")) : " is",
        catalogue.size());
  kept.items = std::ssize(catalogue);
}

Kept choose(const RawInteractions& raw, const PlacesOfUsers& places, const TemporalCut& cut,
            const InteractionOptions& options, const std::string& where) {
  std::vector<std::int64_t> counts(raw.items.size());
  for (const auto& user_places : places) {
    for (const std::size_t place : user_places) ++counts[raw.interactions[place].item];
  }
  const std::int64_t least = cut.untested.empty() ? options.min_item_count : 0;  // a cut has dropped rare items before
  const auto item_stays = [&](std::size_t place) { return counts[raw.interactions[place].item] >= least; };
  Kept kept{std::vector<std::uint32_t>(raw.users.size(), dropped), std::vector<ItemId>(raw.items.size())};
  std::vector<bool> used(raw.items.size());
  const auto keep = [&](std::size_t user) {
    kept.user[user] = static_cast<std::uint32_t>(kept.users++);
    kept.order.push_back(user);
    for (const std::size_t place : places[user]) {
      if (item_stays(place)) used[raw.interactions[place].item] = true;
    }
  };
  for (std::size_t user = 0; user < places.size(); ++user) {
    const auto count = std::count_if(places[user].begin(), places[user].end(), item_stays);
    if (count > 0 && count >= options.min_user_interactions && cut.tested(user)) keep(user);
  }
  for (std::size_t user = 0; user < places.size(); ++user) {  // behind the others
    const auto count = std::count_if(places[user].begin(), places[user].end(), item_stays);
    if (count < min_for_training || cut.tested(user)) continue;
    keep(user);
    ++kept.untested;
  }
  if (!options.catalogue.empty()) {
    find_in_catalogue(raw, used, where, options.catalogue, kept);
    return kept;
  }
  std::vector<std::uint32_t> items;
  for (std::uint32_t item = 0; item < used.size(); ++item) {
    if (used[item]) items.push_back(item);
  }
  sort_by_name(items, [&](std::uint32_t item) -> const std::string& { return raw.items[item]; });
  for (const std::uint32_t item : items) kept.item[item] = static_cast<ItemId>(++kept.items);
  return kept;
}

struct Event {
  double time;
  ItemId item;
};

/// Shuffles each group of equal times. The stream comes from the name, so other users have no influence.
void shuffle_ties(std::vector<Event>& events, std::uint64_t seed, const std::string& user) {
  const std::string digest = sha256_hex(user);
  std::uint64_t stream = 0;
  std::from_chars(digest.data(), digest.data() + 16, stream, 16);
  Random random(seed, stream);
  for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
    while (end < events.size() && events[end].time == events[begin].time) ++end;
    std::vector<Event> group(events.begin() + static_cast<std::ptrdiff_t>(begin),
                             events.begin() + static_cast<std::ptrdiff_t>(end));
    random.shuffle(group);
    std::copy(group.begin(), group.end(), events.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

/// Puts the events of a user, given in the order of the file, into the order of time.
/// @param items  [item id] names
void put_in_order(std::vector<Event>& events, const TiePolicy& ties, const std::string& user,
                  const std::vector<std::string>& items) {
  using Kind = TiePolicy::Kind;
  const auto name = [&](const Event& event) -> const std::string& {
    return items[static_cast<std::size_t>(event.item)];
  };
  std::stable_sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    // Before a shuffle by name, since the items of other users can change the order of ids.
    return ties.kind == Kind::item ? a.item < b.item : ties.kind == Kind::random && name(a) < name(b);
  });
  if (ties.kind == Kind::random) shuffle_ties(events, ties.seed, user);
}

std::int64_t count_tied(const std::vector<Event>& events) {
  std::int64_t tied = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool as_before = i > 0 && events[i - 1].time == events[i].time;
    const bool as_after = i + 1 < events.size() && events[i + 1].time == events[i].time;
    tied += as_before || as_after ? 1 : 0;
  }
  return tied;
}

RawInteractions read_raw(const std::filesystem::path& path, const std::string& where, const ColumnOptions& columns) {
  if (is_parquet(path)) return read_parquet_interactions(path, columns);
  const std::string content = formats::read_plain_or_gzip(path, largest_data_set);
  CHECK(content.empty() || path.extension() != ".parquet",
        "{}: does not begin as a Parquet file does, with PAR1; give it anew, or rename it if it is of another format",
        where);
  return parse_interactions(content, {where, delimiter_of_file(path.filename().string())}, columns);
}

Interactions arrange(const RawInteractions& raw, const PlacesOfUsers& places, const Kept& kept, const TiePolicy& ties,
                     const std::vector<std::string>& catalogue) {
  Interactions result;
  result.format = raw.format;
  result.columns = raw.columns;
  result.dropped_users = static_cast<std::int64_t>(raw.users.size()) - kept.users;
  result.dropped_items = std::ranges::count(kept.item, 0);
  result.absent_items = kept.items - (std::ssize(kept.item) - result.dropped_items);
  result.items.assign(1, "");
  result.items.insert(result.items.end(), catalogue.begin(), catalogue.end());
  result.items.resize(static_cast<std::size_t>(kept.items) + 1);
  for (std::size_t item = 0; item < kept.item.size(); ++item) {
    if (kept.item[item] != 0) result.items[static_cast<std::size_t>(kept.item[item])] = raw.items[item];
  }
  result.begin.push_back(0);
  for (const std::size_t user : kept.order) {
    std::vector<Event> events;
    for (const std::size_t place : places[user]) {
      const RawInteraction& interaction = raw.interactions[place];
      const ItemId item = kept.item[interaction.item];
      if (item != 0) events.push_back({interaction.time, item});
    }
    if (raw.timed) {
      put_in_order(events, ties, raw.users[user], result.items);
      result.tied += count_tied(events);
    }
    for (const Event& event : events) {
      result.item.push_back(event.item);
      if (raw.timed) result.time.push_back(event.time);
    }
    result.users.push_back(raw.users[user]);
    result.begin.push_back(result.interaction_count());
  }
  return result;
}

}  // namespace

std::string_view format_name(InteractionFormat format) {
  switch (format) {
    case InteractionFormat::recbole:
      return "recbole";
    case InteractionFormat::sequences:
      return "sequences";
    case InteractionFormat::pairs:
      return "pairs";
    case InteractionFormat::movielens:
      return "movielens";
    case InteractionFormat::amazon:
      return "amazon";
    case InteractionFormat::json:
      return "json";
    case InteractionFormat::table:
      return "table";
    case InteractionFormat::parquet:
      return "parquet";
  }
  ASSERT(false, "unknown format");
}

std::string_view unit_of(InteractionFormat format) {
  return format == InteractionFormat::parquet ? "row" : "line";
}

double Interactions::density() const {
  return static_cast<double>(interaction_count()) /
         (static_cast<double>(user_count()) * static_cast<double>(item_count()));
}

std::span<const ItemId> Interactions::items_of(std::int64_t user) const {
  return history(user).items;
}

History Interactions::history(std::int64_t user) const {
  ASSERT(user >= 0 && user < user_count(), "user {} of {}", user, user_count());
  const auto at = static_cast<std::size_t>(user);
  const auto first = static_cast<std::size_t>(begin[at]), count = static_cast<std::size_t>(begin[at + 1] - begin[at]);
  const std::span all(time);
  return {std::span(item).subspan(first, count), all.empty() ? all : all.subspan(first, count)};
}

Interactions read_interactions(const std::filesystem::path& path, const InteractionOptions& options) {
  CHECK(options.min_item_count >= 0, "--min-item-count: {}; must be at least 0", options.min_item_count);
  CHECK(options.min_user_interactions >= 0, "min_user_interactions: {}; must be at least 0",
        options.min_user_interactions);
  const std::string where = printable(path.string());
  const RawInteractions raw = read_raw(path, where, options.columns);
  CHECK(raw.timed || options.ties.kind == TiePolicy::Kind::file,
        "--ties: {} has no times, so its order is that of the file; leave the option out", where);
  PlacesOfUsers places = places_of_users(raw);
  const std::int64_t repeated = settle_repeats(raw, options.duplicates, where, places);
  const TemporalCut cut = cut_by_time(raw, options, where, places);
  const Kept kept = choose(raw, places, cut, options, where);
  CHECK(!options.split.in_time() || kept.untested < kept.users,
        "{}: no user has two interactions before the time of --split {} and one from it on; give another share or time",
        where, options.split.name());
  CHECK(kept.users > 0, "{}: each of its {} users has fewer than {} interactions{}; give a larger data set{}", where,
        raw.users.size(), std::max<std::int64_t>(options.min_user_interactions, 1),
        options.min_item_count > 1
            ? fmt::format(" with items that have at least {} (--min-item-count)", options.min_item_count)
            : "",
        options.min_item_count > 1 ? ", or a smaller --min-item-count" : "");
  Interactions result = arrange(raw, places, kept, options.ties, options.catalogue);
  result.repeated = repeated;
  result.untested = kept.untested;
  result.later = cut.later;
  result.split_time = cut.time;
  return result;
}

}  // namespace gainlens::data
