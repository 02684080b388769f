#include "training/schedule.h"

#include "core/check.h"
#include "core/error.h"
#include "core/json_words.h"
#include "core/nearest.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

namespace gainlens::training {

Decay parse_decay(std::string_view name) {
  if (name == "constant") return Decay::constant;
  if (name == "cosine") return Decay::cosine;
  const std::string shown = printable(name, 40);
  throw_invalid("schedule: '{}'; must be constant or cosine{}", shown,
                did_you_mean(shown, std::vector<std::string>{"constant", "cosine"}));
}

double learning_rate_factor(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps)
    return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps + 1);
  if (schedule.decay == Decay::constant) return 1;
  const std::int64_t decaying = std::max<std::int64_t>(1, schedule.total_steps - 1 - schedule.warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(decaying));
  return schedule.final_factor + (1 - schedule.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

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

DataOrder::DataOrder(std::uint64_t seed, std::int64_t examples) : seed_(seed), examples_(examples) {
  ASSERT(examples > 0, "data order: there are no examples");
}

std::int64_t DataOrder::at(std::int64_t position) {
  const std::int64_t epoch = epoch_of(position);
  if (epoch != epoch_) {
    permutation_.resize(static_cast<std::size_t>(examples_));
    std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
    Random random(seed_, static_cast<std::uint64_t>(epoch));
    random.shuffle(permutation_);
    epoch_ = epoch;
  }
  return permutation_[static_cast<std::size_t>(position % examples_)];
}

}  // namespace gainlens::training
