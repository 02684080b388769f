#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// An item of a catalogue: 1 to the number of items. 0 is no item; models use it for padding.
using ItemId = std::int32_t;

/// How interactions of one user at the same time are put in order.
struct TiePolicy {
  enum class Kind {
    file,    ///< as they stand in the file
    item,    ///< by item id
    random,  ///< shuffled, from the seed and the user's name
  };
  Kind kind = Kind::file;
  std::uint64_t seed = 0;  ///< of `random`

  std::string name() const;  ///< as on the command line: "file", "item", "random:7"
};

/// @throws InvalidArgument  neither "file", "item" nor "random:SEED" (nearest match named)
TiePolicy parse_tie_policy(std::string_view text);

/// The file formats that read_interactions() knows. Each may be gzipped.
enum class InteractionFormat {
  recbole,    ///< RecBole atomic file: a header `user_id:token item_id:token timestamp:float`, fields split by tabs
  sequences,  ///< a line for each user: `user item item ...`, in time order, split by spaces or tabs
  movielens,  ///< `user::item::rating::time`
  amazon,     ///< a JSON object on each line: reviewerID, asin, unixReviewTime
};

std::string_view format_name(InteractionFormat format);  ///< "recbole", "sequences", "movielens" or "amazon"

struct InteractionOptions {
  TiePolicy ties;
  std::int64_t min_item_count = 0;         ///< items with fewer interactions are dropped first; 0: none
  std::int64_t min_user_interactions = 3;  ///< users with fewer interactions (of the items that are kept) are dropped
};

/// The interactions of users with items: for each user a sequence of items in time order.
struct Interactions {
  InteractionFormat format = InteractionFormat::sequences;
  std::vector<std::string> users;   ///< [user]: names, in the order of their first line in the file
  std::vector<std::string> items;   ///< [item id]: names; items[0] is empty
  std::vector<std::int64_t> begin;  ///< [user + 1]: where the sequence of each user begins in `item`
  std::vector<ItemId> item;         ///< [interaction]
  std::vector<double> time;         ///< [interaction] in seconds; empty if the format has no times
  std::int64_t dropped_users = 0;   ///< users with too few interactions
  std::int64_t dropped_items = 0;   ///< items below min_item_count, and items of dropped users alone
  std::int64_t tied = 0;            ///< interactions that share their user and their time with another one

  std::int64_t user_count() const { return static_cast<std::int64_t>(users.size()); }
  std::int64_t item_count() const { return static_cast<std::int64_t>(items.size()) - 1; }
  std::int64_t interaction_count() const { return static_cast<std::int64_t>(item.size()); }
  double density() const;  ///< interactions / (users items)
  std::span<const ItemId> of_user(std::int64_t user) const;
};

/// Reads a data set. The format is found from the content. Items are numbered in the order of their names: as numbers
/// if all of them are whole numbers below 2^31, else byte by byte. So ids do not depend on the order of the lines.
/// @throws InvalidArgument  missing, unreadable or empty; a format that is not known; malformed lines (number and text
///     of the first, count of the others); a time that is not a finite number; the same user, item and time twice; a
///     user twice (sequences); more than 2^31 - 2 items; no user is left
Interactions read_interactions(const std::filesystem::path& path, const InteractionOptions& options = {});

}  // namespace gainlens::data
