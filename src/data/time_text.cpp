#include "data/time_text.h"

#include "core/error.h"
#include "core/plain_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace gainlens::data {
namespace {

/// Takes the first `count` characters, all of them digits.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

/// Hours and minutes in seconds.
/// @param colon  whether one has to stand between them
std::optional<int> take_hours_and_minutes(std::string_view& text, bool colon) {
  const auto hours = take_digits(text, 2);
  if (!hours || *hours > 23 || (colon && !take(text, ':'))) return std::nullopt;
  const auto minutes = take_digits(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return 3600 * *hours + 60 * *minutes;
}

/// Seconds and their fraction; 0 if there are none.
std::optional<double> take_seconds(std::string_view& text) {
  if (!take(text, ':')) return 0;
  const std::string_view begin = text;
  const auto whole = take_digits(text, 2);
  if (!whole || *whole > 59) return std::nullopt;
  if (take(text, '.')) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    constexpr std::size_t kept = 6;  // digits: nearer moments would become equal
    if (digits == 0 || text.substr(0, digits).find_first_not_of('0', kept) != std::string_view::npos)
      return std::nullopt;
    text.remove_prefix(digits);
  }
  return finite_number(begin.substr(0, begin.size() - text.size()));
}

/// Seconds that local time is ahead of UTC, which the rest of the text says.
std::optional<int> offset_of(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return 0;
  const char sign = text.front();
  if (sign != '+' && sign != '-') return std::nullopt;
  text.remove_prefix(1);
  const auto ahead = take_hours_and_minutes(text, /*colon=*/text.size() == 5);
  if (!ahead || !text.empty()) return std::nullopt;
  return sign == '+' ? *ahead : -*ahead;
}

}  // namespace

bool time_fits(double time) {
  return std::isfinite(time) && std::abs(time) < 0x1p53;
}

std::optional<double> seconds_of_date(std::string_view text) {
  using namespace std::chrono;
  const auto year_number = take_digits(text, 4);
  if (!year_number || !take(text, '-')) return std::nullopt;
  const auto month_number = take_digits(text, 2);
  if (!month_number || !take(text, '-')) return std::nullopt;
  const auto day_number = take_digits(text, 2);
  if (!day_number) return std::nullopt;
  const year_month_day date{year{*year_number}, month{static_cast<unsigned>(*month_number)},
                            day{static_cast<unsigned>(*day_number)}};
  if (!date.ok()) return std::nullopt;
  const double midnight = 86400.0 * static_cast<double>(sys_days(date).time_since_epoch().count());
  if (text.empty()) return midnight;
  if (!take(text, 'T') && !take(text, ' ')) return std::nullopt;
  const auto minutes = take_hours_and_minutes(text, /*colon=*/true);
  if (!minutes) return std::nullopt;
  const auto seconds = take_seconds(text);
  if (!seconds) return std::nullopt;
  const auto ahead = offset_of(text);
  if (!ahead) return std::nullopt;
  return midnight + *minutes - *ahead + *seconds;
}

std::string date_of_seconds(double seconds) {
  using namespace std::chrono;
  constexpr double day_length = 86400, year_0 = -62167219200, year_10000 = 253402300800;
  if (!(seconds >= year_0 && seconds < year_10000)) return fmt::format("{}", seconds);
  const double midnight = std::floor(seconds / day_length);
  const year_month_day date(sys_days(days(static_cast<int>(midnight))));
  // Dates are read to the microsecond.
  const auto micros = std::llround((seconds - midnight * day_length) * 1e6);
  const auto whole = micros / 1'000'000;
  std::string fraction = micros % 1'000'000 == 0 ? "" : fmt::format(".{:06}", micros % 1'000'000);
  while (fraction.ends_with('0')) fraction.pop_back();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), whole / 3600,
                     whole / 60 % 60, whole % 60, fraction);
}

std::string read_time(std::string_view text, double& time) {
  const auto found = finite_number(text);
  if (!found) return fmt::format("has the time '{}', which is not a finite number", printable(text, 40));
  if (!time_fits(*found)) return fmt::format("has the time {}, which is not below 2^53", printable(text, 40));
  time = *found;
  return "";
}

bool TimeColumn::differs(bool date, std::int64_t line) {
  if (first_line_ == 0) {
    first_line_ = line;
    dates_ = date;
  }
  return date != dates_;
}

std::string TimeColumn::read(std::string_view text, std::int64_t line, double& time) {
  if (const auto number = finite_number(text)) return read(*number, line, time);
  const auto date = seconds_of_date(text);
  if (!date) {
    return fmt::format(
        "has the time '{}', which is neither a finite number nor a date such as 2024-01-31 or 2024-01-31T23:59:59Z",
        printable(text, 40));
  }
  if (differs(/*date=*/true, line))
    return fmt::format("has the date '{}', and {} {} has a number", printable(text, 40), unit_, first_line_);
  time = *date;
  return "";
}

std::string TimeColumn::read(double number, std::int64_t line, double& time) {
  if (!time_fits(number)) return fmt::format("has the time {}, which is not below 2^53", number);
  if (differs(/*date=*/false, line))
    return fmt::format("has the time {}, and {} {} has a date", number, unit_, first_line_);
  time = number;
  return "";
}

}  // namespace gainlens::data
