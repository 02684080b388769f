#include "training/best_value.h"

#include "core/check.h"
#include "core/json_words.h"

namespace gainlens::training {

BestValue::BestValue(std::int64_t patience) : patience_(patience) {
  CHECK(patience >= 0, "patience: {}; must not be negative (0: no early stopping)", patience);
}

bool BestValue::observe(std::int64_t step, double value) {
  if (value < value_) {
    value_ = value;
    step_ = step;
    since_best_ = 0;
    return true;
  }
  ++since_best_;
  return false;
}

Json BestValue::to_json() const {
  return {{"step", step_}, {"since_best", since_best_}, {"value", any() ? Json(value_) : Json(nullptr)}};
}

void BestValue::restore(const Json& json) {
  try {
    step_ = json.at("step").get<std::int64_t>();
    since_best_ = json.at("since_best").get<std::int64_t>();
    value_ = json.at("value").is_null() ? std::numeric_limits<double>::infinity() : json.at("value").get<double>();
  } catch (const Json::exception& error) {
    throw_invalid("training state: the best value cannot be read ({})", json_error_in_words(error));
  }
}

}  // namespace gainlens::training
