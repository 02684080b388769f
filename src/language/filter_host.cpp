#include "language/filter_host.h"

#include "models/checkpoint/initial_weights.h"

namespace gainlens::language {

std::vector<bft::FilterWeights*> DecoderFilterHost::layer_filter_weights() {
  std::vector<bft::FilterWeights*> layers;
  for (models::LayerWeights& layer : weights_.layers) layers.push_back(&layer.filter);
  return layers;
}

std::vector<models::NamedTensor> DecoderFilterHost::filter_constants() {
  return models::decoder_parameters(config_, weights_, models::WeightRole::constant);
}

}  // namespace gainlens::language
