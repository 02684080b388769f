#include "recommend/sasrec_checkpoint.h"

#include "core/check.h"

#include <ATen/ATen.h>

namespace gainlens::recommend {
SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source) {
  SasRecWeights weights;
  for (const WeightSlot& slot : sasrec_slots(config, weights)) *slot.tensor = source.read(slot);
  std::vector<const bft::FilterWeights*> filters;
  for (const SasRecLayerWeights& layer : weights.layers) filters.push_back(&layer.filter);
  check_stored_filter(weights.precision, filters, source.where);
  return weights;
}

}  // namespace gainlens::recommend
