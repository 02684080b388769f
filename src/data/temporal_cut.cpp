#include "data/temporal_cut.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/plain_text.h"
#include "data/time_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace gainlens::data {
namespace {

constexpr std::string_view leave_one_out = "leave-one-out", temporal = "temporal";

/// Leaves out interactions with rare items.
void drop_rare_items(const RawInteractions& raw, std::int64_t least, PlacesOfUsers& places) {
  std::vector<std::int64_t> counts(raw.items.size());
  for (const auto& user_places : places) {
    for (const std::size_t place : user_places) ++counts[raw.interactions[place].item];
  }
  for (auto& user_places : places)
    std::erase_if(user_places, [&](std::size_t place) { return counts[raw.interactions[place].item] < least; });
}

double time_at_share(const RawInteractions& raw, const PlacesOfUsers& places, double share) {
  std::vector<double> times;
  for (const auto& user_places : places) {
    for (const std::size_t place : user_places) times.push_back(raw.interactions[place].time);
  }
  if (times.empty()) return 0;
  const auto rank = std::min(static_cast<std::size_t>(share * static_cast<double>(times.size())), times.size() - 1);
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace

std::string SplitPolicy::name() const {
  if (!in_time()) return std::string(leave_one_out);
  return fmt::format("{}:{}", data::temporal, moment.value_or(temporal));
}

SplitPolicy parse_split_policy(std::string_view text) {
  if (text == leave_one_out) return {};
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  static const std::array<std::string, 2> kinds = {std::string(leave_one_out), std::string(temporal)};
  CHECK(kind == temporal, "--split: '{}'; must be leave-one-out, temporal:SHARE or temporal:TIME{}",
        printable(text, 40), did_you_mean(kind, kinds));
  const std::string_view given = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (const auto date = seconds_of_date(given)) return {.moment = *date};
  const auto number = finite_number(given);
  if (number && std::abs(*number) > 1 && time_fits(*number)) return {.moment = *number};
  CHECK(number && *number > 0 && *number < 1,
        "--split: '{}'; the share of interactions before the split must lie between 0 and 1, such as temporal:0.9; or "
        "give its time: a date such as temporal:2024-01-31 or temporal:2024-01-31T23:59:59Z, or a number in the unit "
        "of the file",
        printable(text, 40));
  return {.temporal = *number};
}

TemporalCut cut_by_time(const RawInteractions& raw, const InteractionOptions& options, const std::string& where,
                        PlacesOfUsers& places) {
  TemporalCut cut;
  if (!options.split.in_time()) return cut;
  CHECK(raw.timed, "{}: has no times; --split {} needs them", where, options.split.name());
  drop_rare_items(raw, options.min_item_count, places);
  cut.time = options.split.moment ? *options.split.moment : time_at_share(raw, places, options.split.temporal);
  cut.untested.resize(places.size());
  std::int64_t before_all = 0;
  for (std::size_t user = 0; user < places.size(); ++user) {
    const auto is_before = [&](std::size_t place) { return raw.interactions[place].time < cut.time; };
    auto& user_places = places[user];
    const auto before = std::count_if(user_places.begin(), user_places.end(), is_before);
    before_all += before;
    std::optional<std::size_t> test;
    for (const std::size_t place : user_places) {
      if (!is_before(place) && (!test || raw.interactions[place].time < raw.interactions[*test].time)) test = place;
    }
    if (before < 2) test.reset();
    cut.untested[user] = !test;
    const std::size_t all = user_places.size();
    std::erase_if(user_places, [&](std::size_t place) { return !is_before(place) && place != test; });
    cut.later += static_cast<std::int64_t>(all - user_places.size());
  }
  CHECK(before_all > 0, "{}: no interaction lies before the time of --split {}; give a larger share, or a later time",
        where, options.split.name());
  return cut;
}

}  // namespace gainlens::data
