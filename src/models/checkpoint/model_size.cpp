#include "models/checkpoint/model_size.h"

#include "core/checked.h"
#include "models/decoder/weight_fields.h"

namespace gainlens::models {

std::int64_t parameter_count(const DecoderConfig& config) {
  std::int64_t total = 0;
  const auto add = [&total](const std::vector<WeightField>& fields) {
    for (const WeightField& field : fields) {
      if (field.wanted && field.kind != WeightField::Kind::constant)
        total = checked_add(total, checked_elements(field.shape, field.name), "number of parameters");
    }
  };
  add(outer_fields(config));
  for (std::int64_t index = 0; index < config.layers; ++index) add(layer_fields(config, index));
  return total;
}

}  // namespace gainlens::models
