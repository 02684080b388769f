#include "core/estimator.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace gainlens {

std::string_view name_of(Estimator estimator) {
  switch (estimator) {
    case Estimator::reml:
      return "reml";
    case Estimator::reml_naive:
      return "reml_naive";
    case Estimator::reml_conjugate:
      return "reml_conjugate";
    case Estimator::sandwich:
      return "sandwich";
    case Estimator::kish:
      return "kish";
    case Estimator::delta:
      return "delta";
    case Estimator::delta_weight_free:
      return "delta_weight_free";
  }
  throw_internal_error(__FILE__, __LINE__, "an estimator without a name");
}

Estimator parse_estimator(std::string_view name, std::string_view where) {
  std::vector<std::string> names;
  for (const Estimator estimator : all_estimators) {
    if (name_of(estimator) == name) return estimator;
    names.emplace_back(name_of(estimator));
  }
  throw_invalid("{}: no estimator '{}'; must be one of {}{}", where, printable(name, 40), fmt::join(names, ", "),
                did_you_mean(name, names));
}

std::string words_of(const ChosenEstimator& estimator) {
  const std::string name(name_of(estimator.name));
  if (estimator.name != Estimator::delta_weight_free) return name;
  return fmt::format("{} with score noise {}", name, estimator.score_noise);
}

}  // namespace gainlens
