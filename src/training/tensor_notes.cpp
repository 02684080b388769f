#include "training/tensor_notes.h"

#include "core/check.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <iterator>
#include <vector>

namespace gainlens::training {

Json tensors_to_json(std::span<const models::NamedTensor> tensors) {
  Json document = Json::object();
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor values = tensor.to(at::kCPU, at::kDouble).contiguous();
    const double* const first = values.const_data_ptr<double>();
    document[name] = std::vector<double>(first, first + values.numel());
  }
  return document;
}

void tensors_from_json(const Json& document, std::span<const models::NamedTensor> tensors) {
  const at::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : tensors) {
    const auto values = document.at(name).get<std::vector<double>>();
    CHECK(std::ssize(values) == tensor.numel(), "training state: '{}' has {} numbers; must have {}", name,
          values.size(), tensor.numel());
    tensor.copy_(at::tensor(values, at::kDouble).view(tensor.sizes()));
  }
}

}  // namespace gainlens::training
