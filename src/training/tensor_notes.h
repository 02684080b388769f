#pragma once

#include "core/json.h"
#include "models/checkpoint/named_tensor.h"

#include <span>

namespace gainlens::training {

/// The numbers of tensors by name, for Task::notes(): {"name": [number, ...]}.
Json tensors_to_json(std::span<const models::NamedTensor> tensors);
/// Writes the numbers into the tensors.
/// @param document  as tensors_to_json() gave it
/// @throws InvalidArgument  a tensor has another number of elements; a JSON exception if one is missing
void tensors_from_json(const Json& document, std::span<const models::NamedTensor> tensors);

}  // namespace gainlens::training
