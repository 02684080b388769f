#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens {

/// The length of the lists that list_metrics() describe.
inline constexpr std::int64_t list_length = 10;

/// What the lists of the best items of all users are like, whether the users chose these items or not.
struct ListMetric {
  std::string_view name;     ///< in options and files
  std::string_view title;    ///< in tables
  std::string_view unit;     ///< "1", "bits"
  std::string_view meaning;  ///< for descriptions
};

/// coverage@10, novelty@10, popular@10, in this order. Definitions: docs/recommend-results.md, "Lists".
const std::vector<ListMetric>& list_metrics();

/// The metrics of lists, by name.
/// @param items            ids of the items in all lists, from 1; 0: the place is empty, since a user has no more
///     candidates
/// @param training_counts  [id - 1] how often the training items hold the item
/// @returns  nothing if no list has an item
std::map<std::string, double> metrics_of_lists(std::span<const std::int32_t> items,
                                               std::span<const std::int64_t> training_counts);

}  // namespace gainlens
