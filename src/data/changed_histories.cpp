#include "data/changed_histories.h"

#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gainlens::data {
namespace {

std::vector<ItemId> all_items(const LeaveOneOut& split, std::int64_t user) {
  const auto items = split.interactions().items_of(user);
  return {items.begin(), items.end()};
}

std::int64_t missing_items(const LeaveOneOut& split, const Sequences& sequences) {
  std::vector<bool> found(static_cast<std::size_t>(split.items()) + 1, false);
  for (const std::vector<ItemId>& sequence : sequences) {
    for (const ItemId item : sequence) found[static_cast<std::size_t>(item)] = true;
  }
  return std::count(found.begin() + 1, found.end(), false);
}

}  // namespace

std::string sequence_lines(const Sequences& sequences) {
  std::string lines;
  for (std::size_t user = 0; user < sequences.size(); ++user) {
    lines += std::to_string(user + 1);
    for (const ItemId item : sequences[user]) lines += ' ' + std::to_string(item);
    lines += '\n';
  }
  return lines;
}

ChangedHistories thinned(const LeaveOneOut& split, double share, std::uint64_t seed) {
  CHECK(share > 0 && share <= 1, "--density: {}; must be above 0, and at most 1", share);
  ChangedHistories made;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    // Of one user alone: neither other users nor the share move the order in which its items leave.
    Random random(seed, static_cast<std::uint64_t>(user));
    const std::vector<ItemId> all = all_items(split, user);
    const std::size_t training = all.size() - 2;
    const double wanted = share * static_cast<double>(training) + random.uniform();
    const auto kept = std::min(static_cast<std::size_t>(std::floor(wanted)), training);
    std::vector<std::size_t> places(training);
    std::iota(places.begin(), places.end(), 0);
    random.shuffle(places);
    places.resize(std::max<std::size_t>(kept, 1));
    std::ranges::sort(places);
    std::vector<ItemId>& sequence = made.sequences.emplace_back();
    for (const std::size_t place : places) sequence.push_back(all[place]);
    sequence.insert(sequence.end(), all.end() - 2, all.end());
    made.training += static_cast<std::int64_t>(training);
    made.changed += static_cast<std::int64_t>(places.size());
    if (kept == 0) ++made.floored;
  }
  made.missing_items = missing_items(split, made.sequences);
  return made;
}

ChangedHistories with_noise(const LeaveOneOut& split, double share, std::uint64_t seed) {
  CHECK(share >= 0 && share <= 1, "--noise: {}; must be from 0 to 1", share);
  ChangedHistories made;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    Random random(seed, static_cast<std::uint64_t>(user));
    std::vector<ItemId>& sequence = made.sequences.emplace_back(all_items(split, user));
    std::vector<ItemId> own = sequence, others;
    std::ranges::sort(own);
    for (ItemId item = 1; item <= split.items(); ++item) {
      if (!std::ranges::binary_search(own, item)) others.push_back(item);
    }
    for (std::size_t place = 0; place + 2 < sequence.size(); ++place) {
      // Both are drawn for every item, so that the share moves neither.
      const double replaced = random.uniform(), which = random.uniform();
      if (replaced >= share) continue;
      CHECK(!others.empty(), "--noise: user {} has every item of the catalogue; there is none to replace one with",
            user + 1);
      sequence[place] = others[static_cast<std::size_t>(which * static_cast<double>(others.size()))];
      ++made.changed;
    }
    made.training += std::ssize(sequence) - 2;
  }
  made.missing_items = missing_items(split, made.sequences);
  return made;
}

}  // namespace gainlens::data
