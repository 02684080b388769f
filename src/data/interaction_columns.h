#pragma once

#include "data/interactions.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// The places of the three values of an interaction among the names of columns or keys.
struct ColumnPlaces {
  std::size_t user = 0, item = 0;
  std::optional<std::size_t> time;  ///< nothing: the order of the lines is the order in time
};

/// What the names are, in messages.
struct ColumnKind {
  std::string_view one, several;
  std::string_view records;      ///< what an interaction each stands in
  bool may_lack_header = false;  ///< the names may be values of the first line
};
inline constexpr ColumnKind table_columns = {"column", "columns", "lines", true};
inline constexpr ColumnKind json_keys = {"key", "keys", "lines"};
inline constexpr ColumnKind parquet_columns = {"column", "columns", "rows"};

/// Finds the columns that the options name. One that they do not name is recognised by a common name, in any case and
/// with or without underscores: user, user_id, uid, reviewerID, customer_id; item, item_id, movie_id, product_id,
/// book_id, video_id, track_id, asin, parent_asin; timestamp, time, datetime, date, ts, unix_timestamp, unixReviewTime.
/// There may be no time if no other columns are left.
/// @param names  of the file, in its order
/// @param where  names the file in messages
/// @throws InvalidArgument  a column that is named is not there (those that are there are shown, and the nearest match)
///     or stands twice; none, or several, have a common name; one column for two values
ColumnPlaces find_columns(const std::vector<std::string>& names, const ColumnOptions& options, const ColumnKind& kind,
                          std::string_view where);

}  // namespace gainlens::data
