#include "language/master_weights.h"

#include "core/check.h"
#include "models/checkpoint/initial_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <utility>

namespace gainlens::language {

MasterWeights::MasterWeights(const models::DecoderConfig& config, models::DecoderWeights masters, at::ScalarType type)
    : masters_(std::move(masters)), copy_(masters_) {
  const auto narrow = [&](const models::TensorsByField& fields) {
    for (const auto& [name, tensor] : fields)
      if (tensor->defined() && tensor->scalar_type() == at::kFloat) *tensor = tensor->detach().to(type);
  };
  narrow(models::tensors_by_field(copy_));
  if (config.tied_head) copy_.head = copy_.embedding;
  std::map<const void*, at::Tensor> factors;  // by the master: projections that share a stored tensor share its factor
  const auto narrow_factor = [&](at::Tensor& factor) {
    at::Tensor& made = factors[factor.unsafeGetTensorImpl()];
    if (!made.defined()) made = factor.detach().to(type);
    factor = made;
  };
  for (models::LayerWeights& layer : copy_.layers) {
    narrow(models::tensors_by_field(layer));
    for (auto& [field, low_rank] : layer.low_rank) {
      narrow_factor(low_rank.down);
      narrow_factor(low_rank.up);
    }
  }
  for (const auto role : {models::WeightRole::weight, models::WeightRole::precision, models::WeightRole::constant}) {
    for (const models::NamedTensor& weight : models::decoder_parameters(config, masters_, role))
      wide_.push_back(weight.tensor);
    for (const models::NamedTensor& weight : models::decoder_parameters(config, copy_, role)) {
      at::Tensor tensor = weight.tensor;
      narrow_.push_back(tensor.set_requires_grad(role != models::WeightRole::constant));
    }
  }
  ASSERT(wide_.size() == narrow_.size(), "masters and their copy differ");
}

void MasterWeights::refresh() {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < wide_.size(); ++i) narrow_[i].copy_(wide_[i]);
}

void MasterWeights::collect_gradients() {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < wide_.size(); ++i) {
    at::Tensor found = std::exchange(narrow_[i].mutable_grad(), at::Tensor());
    if (!found.defined()) continue;
    at::Tensor& gradient = wide_[i].mutable_grad();
    if (gradient.defined()) {
      gradient.add_(found);
    } else {
      gradient = found.to(at::kFloat);
    }
  }
}

}  // namespace gainlens::language
