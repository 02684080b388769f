#include "recommend/sasrec_checkpoint.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <limits>

namespace gainlens::recommend {
namespace {

/// Numbers that no training writes.
void check_filter(const SasRecWeights& weights, const std::string& where) {
  const auto check_range = [&](const at::Tensor& x, const char* name, double least, double most) {
    if (!x.defined()) return;
    CHECK(x.min().item<double>() >= least && x.max().item<double>() <= most,
          "{}: '{}' holds a number below {} or above {}; the file is damaged", where, name, least, most);
  };
  constexpr double none = std::numeric_limits<double>::infinity();
  check_range(weights.precision.strength, "precision.strength", 0, 1);
  check_range(weights.precision.base, "precision.base", 0, 1);
  check_range(weights.precision.items, "precision.items", 0, none);
  for (std::size_t i = 0; i < weights.layers.size(); ++i)
    check_range(weights.layers[i].filter.stretch, fmt::format("layers.{}.filter.stretch", i).c_str(), 1e-3, none);
}

}  // namespace

SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source) {
  SasRecWeights weights;
  for (const WeightSlot& slot : sasrec_slots(config, weights)) *slot.tensor = source.read(slot);
  check_filter(weights, source.where);
  return weights;
}

}  // namespace gainlens::recommend
