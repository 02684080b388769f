#include "data/repeats.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/nearest.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace gainlens::data {
namespace {

const std::array<std::string, 4> duplicates_names = {"keep", "exact", "first", "last"};

/// A repeated interaction makes the count of its item wrong, and often means that a file was joined with itself.
class SameTimes {
 public:
  void add(const RawInteraction& before, const RawInteraction& now) {
    ++count_;
    if (again_ == nullptr || now.line < again_->line) first_ = &before, again_ = &now;
  }
  void refuse(const RawInteractions& raw, std::string_view where) const {
    if (count_ == 0) return;
    throw_invalid(
        "{}: {}s {} and {} are the same interaction of user '{}' with item '{}' at the same time{}; keep one, or "
        "give --duplicates exact",
        where, raw.unit(), first_->line, again_->line, printable(raw.users[again_->user], 40),
        printable(raw.items[again_->item], 40),
        count_ == 1 ? "" : fmt::format(" ({} repeated too)", counted_are(count_ - 1, "other interaction")));
  }

 private:
  const RawInteraction *first_ = nullptr, *again_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace

std::string_view duplicates_name(Duplicates duplicates) {
  return duplicates_names.at(static_cast<std::size_t>(duplicates));
}

Duplicates parse_duplicates(std::string_view text) {
  for (const Duplicates known : {Duplicates::keep, Duplicates::exact, Duplicates::first, Duplicates::last}) {
    if (text == duplicates_name(known)) return known;
  }
  throw_invalid("--duplicates: '{}'; must be keep, exact, first or last{}", printable(text, 40),
                did_you_mean(text, duplicates_names));
}

PlacesOfUsers places_of_users(const RawInteractions& raw) {
  PlacesOfUsers places(raw.users.size());
  for (std::size_t i = 0; i < raw.interactions.size(); ++i) places[raw.interactions[i].user].push_back(i);
  return places;
}

std::int64_t settle_repeats(const RawInteractions& raw, Duplicates duplicates, std::string_view where,
                            PlacesOfUsers& places) {
  CHECK(raw.timed || duplicates != Duplicates::exact,
        "{}: has no times; --duplicates exact needs them, to tell a copy from an item that was taken again", where);
  const auto at = [&](std::size_t place) -> const RawInteraction& { return raw.interactions[place]; };
  std::int64_t repeated = 0;
  SameTimes same;
  for (auto& user_places : places) {
    std::vector<std::size_t> by_item = user_places, kept;
    std::sort(by_item.begin(), by_item.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(at(a).item, at(a).time, a) < std::tuple(at(b).item, at(b).time, b);
    });
    for (std::size_t i = 0; i < by_item.size(); ++i) {
      const bool again = i > 0 && at(by_item[i - 1]).item == at(by_item[i]).item;
      const bool last = i + 1 == by_item.size() || at(by_item[i + 1]).item != at(by_item[i]).item;
      repeated += again ? 1 : 0;
      const bool copy = again && at(by_item[i - 1]).time == at(by_item[i]).time;
      if (copy) same.add(at(by_item[i - 1]), at(by_item[i]));
      const bool stays = duplicates == Duplicates::exact ? !copy : duplicates == Duplicates::first ? !again : last;
      if (stays) kept.push_back(by_item[i]);
    }
    if (duplicates == Duplicates::keep) continue;
    std::sort(kept.begin(), kept.end());
    user_places = std::move(kept);
  }
  // Without times, a user who takes an item again is no mistake.
  if (raw.timed && duplicates == Duplicates::keep) same.refuse(raw, where);
  return repeated;
}

}  // namespace gainlens::data
