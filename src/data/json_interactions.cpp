#include "core/check.h"
#include "core/json.h"
#include "data/raw_interactions.h"

#include <array>
#include <optional>

namespace gainlens::data {
namespace {

constexpr std::size_t user_place = 0, item_place = 1, time_place = 2;
constexpr const char* not_object = "is not a JSON object";
constexpr const char* not_json = "is not valid JSON";

/// Follows one JSON object, and forgets what it is not asked for. A document of each review would take ten times as
/// long, since most of a review is text that nobody reads here.
class ObjectReader : public nlohmann::json_sax<Json> {
 public:
  std::string fault;  ///< why the line is refused, if the JSON itself is right

  bool key(string_t& name) override { return depth_ != 1 || outer_key(name); }
  bool string(string_t& value) override { return value_of(std::move(value), nullptr); }
  bool number_integer(number_integer_t value) override { return whole_number(value); }
  bool number_unsigned(number_unsigned_t value) override { return whole_number(value); }
  bool number_float(number_float_t value, const string_t&) override { return value_of(std::nullopt, &value); }
  bool null() override { return value_of(std::nullopt, nullptr); }
  bool boolean(bool) override { return value_of(std::nullopt, nullptr); }
  bool binary(binary_t&) override { return value_of(std::nullopt, nullptr); }
  bool start_object(std::size_t) override { return (depth_ == 0 || value_of(std::nullopt, nullptr)) && ++depth_ > 0; }
  bool start_array(std::size_t) override { return value_of(std::nullopt, nullptr) && ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  /// @returns  what is wrong with the line; empty if nothing is wrong
  std::string read(std::string_view line) {
    // nlohmann's lexer takes a NUL for the end of its input and would ignore what follows.
    if (line.find('\0') != std::string_view::npos) return "has a NUL byte";
    if (Json::sax_parse(line.begin(), line.end(), this)) return "";
    return fault.empty() ? not_json : fault;
  }

 protected:
  /// A key of the object itself.
  virtual bool outer_key(string_t& name) = 0;
  /// A value of the object itself, or within one.
  /// @param text    of a text or a whole number
  /// @param number  of a number; null for others
  virtual bool outer_value(std::optional<std::string> text, const double* number) = 0;

  bool refuse(std::string reason) {
    fault = std::move(reason);
    return false;
  }

 private:
  template <typename Whole>
  bool whole_number(Whole value) {
    const auto number = static_cast<double>(value);
    return value_of(std::to_string(value), &number);
  }
  bool value_of(std::optional<std::string> text, const double* number) {
    if (depth_ == 0) return refuse(not_object);
    return depth_ > 1 || outer_value(std::move(text), number);
  }
  std::int64_t depth_ = 0;
};

/// The keys of an object.
class ObjectKeys : public ObjectReader {
 public:
  std::vector<std::string> names;

 protected:
  bool outer_key(string_t& name) override {
    names.push_back(name);
    return true;
  }
  bool outer_value(std::optional<std::string>, const double*) override { return true; }
};

/// The values of up to three keys.
class ObjectValues : public ObjectReader {
 public:
  /// @param keys  must exist as long as this object
  ObjectValues(const std::vector<std::string>& keys, TimeColumn& times, std::int64_t line)
      : keys_(keys), times_(times), line_(line) {}

  std::array<std::optional<std::string>, 2> names;  ///< of user and item
  std::optional<double> time;

 protected:
  bool outer_key(string_t& name) override {
    wanted_ = std::nullopt;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (name != keys_[i]) continue;
      if (seen_.at(i)) return refuse(fmt::format("has the key '{}' twice", printable(name, 40)));
      seen_.at(i) = true;
      wanted_ = i;
    }
    return true;
  }
  bool outer_value(std::optional<std::string> text, const double* number) override {
    if (!wanted_) return true;
    const std::size_t place = *wanted_;
    wanted_ = std::nullopt;
    if (place == time_place) return time_value(text, number);
    names.at(place) = std::move(text);
    return names.at(place) ||
           refuse(fmt::format("has the key '{}' with neither a text nor a whole number", printable(keys_[place], 40)));
  }

 private:
  bool time_value(const std::optional<std::string>& text, const double* number) {
    if (!text && number == nullptr)
      return refuse(fmt::format("has the key '{}' with neither a number nor a date", printable(keys_[time_place], 40)));
    double value = 0;
    // A number within quotes is a number too: some programs write all values so.
    std::string reason = number != nullptr ? times_.read(*number, line_, value) : times_.read(*text, line_, value);
    if (!reason.empty()) return refuse(std::move(reason));
    time = value;
    return true;
  }

  const std::vector<std::string>& keys_;
  TimeColumn& times_;
  std::int64_t line_;
  std::optional<std::size_t> wanted_;  // the key whose value comes next
  std::array<bool, 3> seen_{};
};

const std::vector<std::string> amazon_keys = {"reviewerID", "asin", "unixReviewTime"};

}  // namespace

JsonParser::JsonParser(RawInteractions& result, const DataLine& first, const ColumnOptions& options,
                       std::string_view where)
    : LineParser(result) {
  ObjectKeys found;
  const std::string fault = found.read(first.text);
  CHECK(fault.empty(), "{}: line {} {}: '{}'; each line is a JSON object", where, first.number, fault,
        printable(first.text, 80));
  const ColumnPlaces places = find_columns(found.names, options, json_keys, where);
  keys_ = {found.names[places.user], found.names[places.item]};
  if (places.time) keys_.push_back(found.names[*places.time]);
  result.timed = places.time.has_value();
  if (keys_ == amazon_keys) {
    result.format = InteractionFormat::amazon;  // what earlier versions called it, in stored requests
  } else {
    result.columns =
        ReadColumns{.user = keys_[user_place], .item = keys_[item_place], .time = {}, .delimiter = {}, .quotes = {}};
    if (places.time) result.columns->time = keys_[time_place];
  }
}

std::string JsonParser::read(const DataLine& line) {
  ObjectValues values(keys_, times_, line.number);
  std::string fault = values.read(line.text);
  if (!fault.empty()) return fault;
  for (const std::size_t place : {user_place, item_place}) {
    if (!values.names.at(place)) return fmt::format("has no key '{}'", printable(keys_[place], 40));
  }
  if (keys_.size() > time_place && !values.time)
    return fmt::format("has no key '{}'", printable(keys_[time_place], 40));
  if (result_.columns) result_.columns->dates = times_.dates();
  return add(*values.names[user_place], *values.names[item_place], values.time.value_or(0), line.number);
}

std::string JsonParser::allowed() const {
  return fmt::format("each line is a JSON object with the names {} and {}{}", printable(keys_[user_place], 40),
                     printable(keys_[item_place], 40),
                     keys_.size() > time_place ? " and the time " + printable(keys_[time_place], 40) : "");
}

}  // namespace gainlens::data
