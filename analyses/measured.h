#pragma once

#include "core/error.h"
#include "core/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace gainlens::analyses {

/// A result, or the reason why there is none: never both, never neither.
template <typename T>
class Maybe {
 public:
  Maybe(T value) : value_(std::move(value)) {}  // NOLINT: a result is given as it is
  static Maybe none(std::string reason) {
    ASSERT(!reason.empty(), "a missing result without a reason");
    Maybe missing;
    missing.reason_ = std::move(reason);
    return missing;
  }

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const {
    ASSERT(value_.has_value(), "result read though it is missing: {}", reason_);
    return *value_;
  }
  const T* operator->() const { return &**this; }
  const std::string& reason() const { return reason_; }  ///< empty where there is a value

 private:
  Maybe() = default;
  std::optional<T> value_;
  std::string reason_;
};

using Measured = Maybe<double>;

/// Ends of an interval, in the unit of what it is of.
struct Interval {
  double low;
  double high;
};

/// `object[name]` = the number, or null with `<name>_reason` beside it.
void put(OrderedJson& object, std::string_view name, const Measured& value);
/// `object[name]` = [low, high], or null with `<name>_reason` beside it.
void put(OrderedJson& object, std::string_view name, const Maybe<Interval>& value);

}  // namespace gainlens::analyses
