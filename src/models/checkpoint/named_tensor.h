#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace gainlens::models {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

}  // namespace gainlens::models
