#pragma once

#include "data/leave_one_out.h"

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// A split from sequences of item ids, in the order of the users "u0", "u1", ...; items are named "1", "2", ...
/// @param seconds  between two interactions of a user; 0: without times
inline data::LeaveOneOut split_of(const std::vector<std::vector<data::ItemId>>& sequences, std::int64_t items,
                                  double seconds = 0) {
  data::Interactions interactions;
  interactions.items.emplace_back();
  for (std::int64_t id = 1; id <= items; ++id) interactions.items.push_back(std::to_string(id));
  interactions.begin.push_back(0);
  for (const auto& sequence : sequences) {
    interactions.users.push_back("u" + std::to_string(interactions.users.size()));
    interactions.item.insert(interactions.item.end(), sequence.begin(), sequence.end());
    for (std::size_t i = 0; seconds > 0 && i < sequence.size(); ++i)
      interactions.time.push_back(1e9 + seconds * static_cast<double>(i));
    interactions.begin.push_back(interactions.interaction_count());
  }
  return data::LeaveOneOut(std::move(interactions));
}

/// Users who go through the items in a ring, each from another one: the next item follows from the last.
inline data::LeaveOneOut ring_of(std::int64_t users, std::int64_t items, double seconds = 0) {
  std::vector<std::vector<data::ItemId>> sequences;
  for (std::int64_t user = 0; user < users; ++user) {
    auto& sequence = sequences.emplace_back();
    for (std::int64_t i = 0; i < 4 + user % 7; ++i)
      sequence.push_back(static_cast<data::ItemId>((user * 5 + i) % items + 1));
  }
  return split_of(sequences, items, seconds);
}
/// The same, one interaction a day.
inline data::LeaveOneOut timed_ring_of(std::int64_t users, std::int64_t items) {
  return ring_of(users, items, 86400);
}

}  // namespace gainlens::recommend
