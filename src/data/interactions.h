#pragma once

#include "data/delimited.h"

#include <cstdint>
#include <filesystem>
#include <optional>
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
    random,  ///< shuffled, from the seed and the user's name: neither other users nor the order of lines matter
  };
  Kind kind = Kind::file;
  std::uint64_t seed = 0;  ///< of `random`

  std::string name() const;  ///< as on the command line: "file", "item", "random:7"
};

/// @throws InvalidArgument  neither "file", "item" nor "random:SEED" (nearest match named)
TiePolicy parse_tie_policy(std::string_view text);

/// The file formats that read_interactions() knows. Each but Parquet may be gzipped. Names of users and items may be
/// any text without control characters, unless it says otherwise.
enum class InteractionFormat {
  recbole,    ///< RecBole atomic file: a header `user_id:token item_id:token timestamp:float` in any order, with other
              ///< columns or none, split by tabs. Without a timestamp the order of the file is the order in time
  sequences,  ///< a line for each user: `user item item ...`, in time order, split by spaces or tabs. Items are numbers
              ///< from 1 to 2^31 - 1: 0 is padding in many such files, and letters mean that it is another kind of file
  pairs,      ///< `user item` on every line, in time order, with items as in `sequences`: how SASRec's data are given
  movielens,  ///< `user::item::rating::time`, or the same with tabs, as in u.data
  amazon,     ///< a JSON object on each line: reviewerID, asin, unixReviewTime; other keys are not read
  json,       ///< a JSON object on each line, with other keys, which ColumnOptions name
  table,      ///< CSV or TSV with a header; ColumnOptions name the columns
  parquet,    ///< Apache Parquet; ColumnOptions name the columns. Needs a build with Arrow (parquet_interactions.h)
};

std::string_view format_name(InteractionFormat format);  ///< "recbole", "sequences", "movielens" and so on
std::string_view unit_of(InteractionFormat format);      ///< what an interaction stands in: "line", or "row" in Parquet

/// The name of a time column that is none.
inline constexpr const char* no_times = "none";

/// The columns of a table or the keys of JSON lines that hold the interactions. What is not given is found from the
/// file, see find_columns().
struct ColumnOptions {
  std::string user = {}, item = {}, time = {};  ///< names; `time` may be no_times. Empty: recognised by a common name
  std::optional<char> delimiter = {};           ///< of a table; nothing: from the extension of the file
  std::optional<Quotes> quotes = {};            ///< of a table; nothing: RFC 4180
  bool header = true;                           ///< false: a table whose columns are called 1, 2, 3, ...

  bool name_columns() const { return !user.empty() || !item.empty() || !time.empty(); }
  /// Whether the file has to be a table, of text or not, or JSON lines.
  bool reads_columns() const { return name_columns() || quotes || !header; }
};

/// What becomes of an interaction with an item that its user has had before or has again.
enum class Duplicates {
  keep,   ///< all of them stay
  exact,  ///< those at the same time are one interaction, the first line; others stay
  first,  ///< the first one of each user and item stays, in time; at the same time, the first line
  last,   ///< likewise the last one
};
std::string_view duplicates_name(Duplicates duplicates);  ///< as on the command line: "keep", "exact", "first", "last"
/// @throws InvalidArgument  none of the four (nearest match named)
Duplicates parse_duplicates(std::string_view text);

/// Which interactions of a user are held out.
struct SplitPolicy {
  /// 0: of each user the last one for the test and the one before it for validation, unless there is a moment. Else the
  /// share of all interactions that lie before one moment T for all users: each user's first interaction from T on is
  /// the test, the last one before T the validation.
  double temporal = 0;
  std::optional<double> moment = {};  ///< T itself, in the unit of the file; seconds since 1970 if it was a date

  bool in_time() const { return temporal != 0 || moment.has_value(); }
  /// The name as on the command line: "leave-one-out", "temporal:0.9", "temporal:1388534400" (a date as its seconds).
  std::string name() const;
};

/// @param text  "leave-one-out", "temporal:SHARE" with a share between 0 and 1, or "temporal:TIME" with a number beyond
///     -1 and 1, or a date (seconds_of_date())
/// @throws InvalidArgument  anything else (nearest match named)
SplitPolicy parse_split_policy(std::string_view text);

struct InteractionOptions {
  TiePolicy ties;
  std::int64_t min_item_count = 0;           ///< items with fewer interactions are dropped first; 0: none
  std::int64_t min_user_interactions = 3;    ///< users with fewer interactions (of the items that are kept) are dropped
  Duplicates duplicates = Duplicates::keep;  ///< handled before anything is dropped
  ColumnOptions columns = {};
  SplitPolicy split = {};  ///< a temporal one cuts the histories (cut_by_time())
  /// [id - 1] names of all items, where a model has given them their ids; empty: the items of the file
  std::vector<std::string> catalogue = {};
};

/// Which columns of a table or of Parquet, or keys of JSON lines, were read.
struct ReadColumns {
  std::string user, item;           ///< names as in the file, which is not trusted
  std::optional<std::string> time;  ///< nothing: the file has no times
  std::optional<char> delimiter;    ///< of a table
  std::optional<Quotes> quotes;     ///< of a table
  bool dates = false;  ///< the times are dates of ISO 8601 (in Parquet also dates and timestamps), and not numbers
};

/// Interactions of one user, one after another.
struct History {
  std::span<const ItemId> items;
  std::span<const double> times;  ///< [interaction] in seconds; empty if the data set has no times

  std::size_t size() const { return items.size(); }
  /// The first ones. @param count  at most size()
  History first(std::size_t count) const { return {items.first(count), times.empty() ? times : times.first(count)}; }
};

/// The interactions of users with items: for each user a sequence of items in time order.
struct Interactions {
  InteractionFormat format = InteractionFormat::sequences;
  std::vector<std::string> users;      ///< [user]: names, in the order of their first line in the file; those without a
                                       ///< test come after the others
  std::vector<std::string> items;      ///< [item id]: names; items[0] is empty
  std::vector<std::int64_t> begin;     ///< [user + 1]: where the sequence of each user begins in `item`
  std::vector<ItemId> item;            ///< [interaction]
  std::vector<double> time;            ///< [interaction] in seconds; empty if the format has no times
  std::int64_t dropped_users = 0;      ///< users with too few interactions
  std::int64_t dropped_items = 0;      ///< items below min_item_count, and items of dropped users alone
  std::int64_t absent_items = 0;       ///< items of InteractionOptions::catalogue that no user has
  std::int64_t repeated = 0;           ///< interactions of the file with an item that their user has had before
  std::optional<ReadColumns> columns;  ///< of a table or JSON lines with other keys
  std::int64_t tied = 0;  ///< interactions that share their user and their time with another one; 0 without times

  std::int64_t untested = 0;  ///< the last users, whose interactions are all for training (temporal split)
  std::int64_t later = 0;     ///< interactions that a temporal split leaves out
  double split_time = 0;      ///< T of a temporal split

  std::int64_t user_count() const { return static_cast<std::int64_t>(users.size()); }
  std::int64_t item_count() const { return static_cast<std::int64_t>(items.size()) - 1; }
  std::int64_t interaction_count() const { return static_cast<std::int64_t>(item.size()); }
  double density() const;  ///< interactions / (users items)
  std::span<const ItemId> items_of(std::int64_t user) const;
  History history(std::int64_t user) const;  ///< all interactions of a user
};

/// Reads a data set. The format is found from the first line or Parquet's first bytes, and for tables from the
/// extension (delimiter_of_file) or ColumnOptions::delimiter. Items are numbered in the order of their names: as
/// numbers if all of them are whole numbers below 2^31 without zeros in front, else byte by byte. So ids do not depend
/// on the order of the lines. Line ends may be LF or CRLF. Blank lines are ignored at the end alone: between others
/// they are malformed, because a record may have been lost there. Duplicates are removed first. Items and users are
/// dropped once, in this order: items below `min_item_count`, then users, then items that no user has left. An item may
/// therefore keep fewer interactions.
/// @throws InvalidArgument  missing, unreadable, empty or larger than 16 GiB when unpacked; a format that is not known;
///     malformed lines (number and text of the first, count of the others), also with a time that is not a finite
///     number below 2^53; as find_columns(); columns, a delimiter or quotes for a format that has none; the same user,
///     item and time twice (if the file has times, and duplicates are kept); exact duplicates of a file without times;
///     a user twice (sequences); more than 2^31 - 2 users or items; no user is left; an item that is not in the
///     catalogue; negative counts in the options; as read_parquet_interactions()
Interactions read_interactions(const std::filesystem::path& path, const InteractionOptions& options = {});

}  // namespace gainlens::data
