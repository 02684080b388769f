#include "analyses/measured.h"

#include "core/check.h"

#include <cmath>

namespace gainlens::analyses {
namespace {

void put_missing(OrderedJson& object, std::string_view name, const std::string& reason) {
  object[std::string(name)] = nullptr;
  object[std::string(name) + "_reason"] = reason;
}

}  // namespace

void put(OrderedJson& object, std::string_view name, const Measured& value) {
  if (!value) return put_missing(object, name, value.reason());
  // JSON has no NaN and no infinity: nlohmann would write a null without a reason.
  ASSERT(std::isfinite(*value), "{} is {}", name, *value);
  object[std::string(name)] = *value;
}

void put(OrderedJson& object, std::string_view name, const Maybe<Interval>& value) {
  if (!value) return put_missing(object, name, value.reason());
  ASSERT(std::isfinite(value->low) && std::isfinite(value->high), "{} is [{}, {}]", name, value->low, value->high);
  object[std::string(name)] = {value->low, value->high};
}

}  // namespace gainlens::analyses
