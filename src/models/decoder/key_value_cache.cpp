#include "models/decoder/key_value_cache.h"

namespace gainlens::models {

void KeyValueCache::clear() {
  ids_.clear();
  for (Layer& layer : layers_) layer = {};
}

std::uint64_t KeyValueCache::bytes() const {
  std::uint64_t sum = 0;
  for (const Layer& layer : layers_) {
    sum += layer.keys.bytes() + layer.values.bytes() + layer.key_bias.bytes();
    for (const at::Tensor* tensor : {&layer.delta.query_past, &layer.delta.key_past, &layer.delta.value_past,
                                     &layer.delta.state, &layer.convolution_past})
      if (tensor->defined()) sum += tensor->nbytes();
  }
  return sum;
}

}  // namespace gainlens::models
