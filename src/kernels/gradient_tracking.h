#pragma once

#include "core/error.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <string_view>

namespace gainlens::kernels {

/// Whether operations on the tensor become part of a graph: gradients are enabled, and it needs one. False if
/// undefined.
inline bool is_tracked(const at::Tensor& x) {
  return at::GradMode::is_enabled() && x.defined() && x.requires_grad();
}

/// Refuses a second derivative, in backward passes that have no gradient themselves.
/// @param operation  its name, for the message
/// @throws InvalidArgument  a second derivative was asked for (create_graph)
inline void check_first_derivative(std::string_view operation) {
  if (at::GradMode::is_enabled())
    throw_invalid("{}: a second derivative was asked for (create_graph); only first derivatives exist", operation);
}

/// The tensor, or nothing if it is undefined: what autograd functions take.
inline std::optional<at::Tensor> if_defined(const at::Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

}  // namespace gainlens::kernels
