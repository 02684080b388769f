#include "data/raw_interactions.h"

#include "core/json.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace gainlens::data {
namespace {

constexpr std::array<std::string_view, 3> review_keys = {"reviewerID", "asin", "unixReviewTime"};

/// Keeps three values of a review and forgets the rest. A document of each review would take ten times as long, since
/// most of a review is text that nobody reads here.
class ReviewFields : public nlohmann::json_sax<Json> {
 public:
  std::optional<std::string> user, item;
  std::optional<double> time;
  std::string fault;  ///< why the line is refused, if the JSON itself is right

  bool key(string_t& name) override {
    wanted_ = std::nullopt;
    if (depth_ != 1) return true;
    for (std::size_t i = 0; i < review_keys.size(); ++i) {
      if (name != review_keys[i]) continue;
      if (seen_[i]) return refuse(fmt::format("has the key '{}' twice", name));
      seen_[i] = true;
      wanted_ = i;
    }
    return true;
  }
  bool string(string_t& value) override {
    if (wanted_ == 2u) return refuse("has a unixReviewTime that is not a number");
    if (wanted_) (*wanted_ == 0 ? user : item) = std::move(value);
    wanted_ = std::nullopt;
    return depth_ > 0 || refuse(not_object);
  }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool start_object(std::size_t) override { return other(/*opens_object=*/true) && ++depth_ > 0; }
  bool start_array(std::size_t) override { return other() && ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  static constexpr const char* not_object = "is not a JSON object";

  bool refuse(std::string reason) {
    fault = std::move(reason);
    return false;
  }
  bool number(double value) {
    if (wanted_ == 2u) {
      if (!time_fits(value)) return refuse("has a unixReviewTime that is not below 2^53");
      time = value;
      wanted_ = std::nullopt;
      return true;
    }
    return other();
  }
  /// A value that is none of the three kinds above where one of the keys is expected.
  bool other(bool opens_object = false) {
    if (wanted_) {
      return refuse(
          fmt::format("has the key '{}' with {}", review_keys[*wanted_], *wanted_ == 2 ? "no number" : "no text"));
    }
    return depth_ > 0 || opens_object || refuse(not_object);
  }

  std::int64_t depth_ = 0;
  std::optional<std::size_t> wanted_;  ///< the key whose value comes next
  std::array<bool, review_keys.size()> seen_{};
};

}  // namespace

AmazonParser::AmazonParser(RawInteractions& result) : LineParser(result) {
  result.timed = true;
}

std::string AmazonParser::read(const DataLine& line) {
  // nlohmann's lexer takes a NUL for the end of its input and would ignore what follows.
  if (line.text.find('\0') != std::string_view::npos) return "has a NUL byte";
  ReviewFields fields;
  if (!Json::sax_parse(line.text.begin(), line.text.end(), &fields))
    return fields.fault.empty() ? "is not valid JSON" : fields.fault;
  if (!fields.user) return "has no key 'reviewerID'";
  if (!fields.item) return "has no key 'asin'";
  if (!fields.time) return "has no key 'unixReviewTime'";
  return add(*fields.user, *fields.item, *fields.time, line.number);
}

std::string AmazonParser::allowed() const {
  return "each line is a JSON object with the texts reviewerID and asin and the number unixReviewTime";
}

}  // namespace gainlens::data
