#pragma once

#include "analyses/measured.h"
#include "core/json.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// A result that has rows, described once. Five writers read it: to_json() here; page, LaTeX, terminal and CSV in
// reports/page/table.h. So a number has the same digits wherever people read it, and its full value where programs do.

namespace gainlens::analyses {

/// How readers see the values of a column.
struct Show {
  enum class Kind {
    words,     ///< text of ours: the report's symbols are set as mathematics
    verbatim,  ///< text from a file: no letter of it is a symbol
    whole,     ///< a whole number
    number,
    ends  ///< an interval; its ends are shown as numbers
  };
  Kind kind;
  std::string (*digits)(double) = nullptr;  ///< null: a whole number in full
};

std::string in_fixed_digits(double number, int digits, bool sign);
std::string in_significant_digits(double number, int digits);

template <int digits>
std::string fixed_digits(double number) {
  return in_fixed_digits(number, digits, false);
}
template <int digits>
std::string signed_digits(double number) {
  return in_fixed_digits(number, digits, true);
}
/// "12.4%", of a share.
template <int digits>
std::string percent_digits(double share) {
  return in_fixed_digits(100 * share, digits, false) + "%";
}
template <int digits>
std::string significant_digits(double number) {
  return in_significant_digits(number, digits);
}
/// "1k" for 1024.
std::string token_digits(double tokens);

inline constexpr Show words{Show::Kind::words}, verbatim{Show::Kind::verbatim}, whole{Show::Kind::whole};
inline constexpr Show token_count{Show::Kind::whole, token_digits};
template <int digits>
inline constexpr Show fixed{Show::Kind::number, fixed_digits<digits>};
template <int digits>
inline constexpr Show with_sign{Show::Kind::number, signed_digits<digits>};
template <int digits>
inline constexpr Show percent{Show::Kind::number, percent_digits<digits>};
template <int digits>
inline constexpr Show significant{Show::Kind::number, significant_digits<digits>};
/// @param show  of each end
constexpr Show ends_as(Show show) {
  return {Show::Kind::ends, show.digits};
}

/// A column, and what it is called in each form.
struct TableColumn {
  std::string key;      ///< for programs
  std::string heading;  ///< for readers; empty: they do not see the column
  Show show;
  std::string unit = {};  ///< stands in brackets behind the heading
  /// The name in CSV, where it is not the key; "": it is not there. Intervals have two columns: a * becomes "low" and
  /// "high", and without one they end in _low and _high.
  std::optional<std::string> csv = {};
  std::optional<std::string> json = {};  ///< likewise, in JSON
  bool behind = false;                   ///< readers see it in the cell of the column before it, behind that value
};

/// What stands in a cell: a text, a number, an interval; or the reason why it is missing; or nothing, where its row has
/// no such quantity.
class TableValue {
 public:
  struct Nothing {};
  struct Missing {
    std::string reason;
  };
  using Content = std::variant<Nothing, Missing, std::string, std::int64_t, double, Interval>;

  TableValue() = default;                                                  ///< nothing
  TableValue(std::string text) : content_(std::move(text)) {}              // NOLINT: cells are written as values
  TableValue(std::string_view text) : content_(std::string(text)) {}       // NOLINT
  TableValue(const char* text) : content_(std::string(text)) {}            // NOLINT
  TableValue(std::integral auto whole) : content_(std::int64_t(whole)) {}  // NOLINT
  TableValue(double number);                                               // NOLINT
  TableValue(const Interval& interval);                                    // NOLINT
  template <typename T>
  TableValue(const Maybe<T>& value) {  // NOLINT
    *this = value ? TableValue(*value) : TableValue(std::nullopt, value.reason());
  }
  template <typename T>
  TableValue(const std::optional<T>& value) {  // NOLINT: empty: nothing
    if (value) *this = TableValue(*value);
  }
  /// @throws InternalError  a number with a reason, or neither
  TableValue(std::optional<double> number, const std::string& reason);

  const Content& content() const { return content_; }
  bool is_nothing() const { return std::holds_alternative<Nothing>(content_); }
  /// Why it is missing; null: it is there, or there is nothing.
  const std::string* reason() const;

 private:
  Content content_;
};

/// A member of what a row may not have.
template <typename Owner, typename Member>
TableValue value_of(const std::optional<Owner>& owner, Member Owner::*member) {
  return owner ? TableValue((*owner).*member) : TableValue();
}

struct Table {
  std::string name;     ///< stem of its files
  std::string caption;  ///< plain text
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableValue>> rows = {};
};

/// The columns of a column in CSV: none, one, or the two ends of an interval.
std::vector<std::string> csv_names(const TableColumn& column);

/// @throws InternalError  no column; two of one name in a form; a row of another length; a value that is not of its
///     column's kind
void check_table(const Table& table);

/// Why values are missing, each reason once, with the headings of its columns: "95% interval, p: one document".
std::vector<std::string> reasons_of(const Table& table);

inline constexpr const char* no_value = "–";
/// A value for readers: no_value where it is missing, and where there is nothing.
std::string shown_value(const TableColumn& column, const TableValue& value);

/// {"key": value, ..}. An interval is [low, high]. A missing value is null, with its reason under "key_reason". Nothing
/// has no key.
OrderedJson row_json(const Table& table, std::size_t row);
/// A list of the rows.
OrderedJson to_json(const Table& table);

}  // namespace gainlens::analyses
