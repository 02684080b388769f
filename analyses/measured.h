#pragma once

#include "core/error.h"
#include "core/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::analyses {

/// A result, or the reason why it is missing; always exactly one of the two.
template <typename T>
class Maybe {
 public:
  Maybe(T value) : value_(std::move(value)) {}  // NOLINT: implicit, so that a function can return the value
  static Maybe none(const std::string& reason) {
    if (reason.empty()) throw_internal_error(__FILE__, __LINE__, "a missing result without a reason");
    Maybe missing;
    missing.reason_ = reason;
    return missing;
  }

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const {
    if (!value_) throw_internal_error(__FILE__, __LINE__, "result read though it is missing: " + reason_);
    return *value_;
  }
  const T* operator->() const { return &**this; }
  const std::string& reason() const { return reason_; }  ///< empty if there is a value

 private:
  Maybe() = default;
  std::optional<T> value_;
  std::string reason_;
};

using Measured = Maybe<double>;

/// Ends of an interval, in the unit of the quantity.
struct Interval {
  double low;
  double high;
};

/// `object[name]` = the number; if it is missing, null, and `object[name + "_reason"]` = the reason.
void put(OrderedJson& object, std::string_view name, const Measured& value);
/// `object[name]` = [low, high]; if it is missing, as for a number.
void put(OrderedJson& object, std::string_view name, const Maybe<Interval>& value);
/// `object[name]` = to_json() of a result; if it is missing, as for a number.
template <typename Result>
void put(OrderedJson& object, std::string_view name, const Maybe<Result>& result) {
  if (result)
    object[std::string(name)] = to_json(*result);
  else
    put(object, name, Measured::none(result.reason()));
}

/// A list of to_json() of each.
template <typename Result>
requires requires(const Result& result) {
  to_json(result);
}
OrderedJson to_json(const std::vector<Result>& results) {
  OrderedJson list = OrderedJson::array();
  for (const Result& result : results) list.push_back(to_json(result));
  return list;
}

}  // namespace gainlens::analyses
