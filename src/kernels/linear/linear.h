#pragma once

#include "kernels/linear/packed_weight.h"
#include "kernels/linear/tile_kernels.h"

#include <ATen/core/Tensor.h>

namespace gainlens::kernels {

// Products of activations with packed weights. Evaluation only.
//
// The bits of a result depend neither on the number of threads nor on the other rows of the input: each element is
// summed in the order of the inputs, in blocks of a fixed size. Sums are in float32 for types of 32 bits and less
// (products of bfloat16 are exact in float32), and are rounded once, at the end.
//
// The kernel `libtorch` (float64) promises less: it rounds after each step, logits too, and its bits may depend on the
// number of rows.

/// What is done to a product before it is stored.
struct LinearOptions {
  at::Tensor bias;  ///< [out], of any of the types; may be undefined
  Activation activation = Activation::none;
  at::Tensor residual;  ///< [.., out], added after the activation; may be undefined
  at::Tensor output;    ///< [.., out], written to; undefined: a new tensor. It may be the residual
};

/// f(input weight^T + bias) + residual.
/// @param input  [.., in], in the type of the weight
/// @returns [.., out], in the same type
/// @throws InternalError  shapes or types that do not fit, or a tensor that needs a gradient
at::Tensor linear(const at::Tensor& input, const PackedWeight& weight, const LinearOptions& options = {});

/// The neurons of a gated layer (SwiGLU, GeGLU): the gate of input gate^T, and input neurons^T.
/// @param gate, neurons  two weights of the same shape and type
/// @param gate_bias, neuron_bias  [out], may be undefined
/// @returns [.., out]
/// @throws InternalError  as linear
at::Tensor gated_linear(const at::Tensor& input, const PackedWeight& gate, const PackedWeight& neurons,
                        const at::Tensor& gate_bias, const at::Tensor& neuron_bias, const GateFunction& function);

/// The same from products that exist already: each [.., out], in one type. In float32 the bits are those of
/// gated_linear. With a gradient, and in float64, libtorch computes it.
at::Tensor gated(const at::Tensor& gates, const at::Tensor& neurons, const GateFunction& function);

/// f(x) of each element, in the type of x. In float32 the bits are those of linear() with this activation. With a
/// gradient, and in float64, libtorch computes it.
at::Tensor activated(const at::Tensor& x, Activation activation);

/// Negative log likelihood of one target in each row, -log softmax(logits)[target], where logits = input head^T, or
/// cap tanh(logits / cap) if cap is not 0. Logits are in float32 (float64 for float64 weights), and only a block of
/// them exists at a time.
/// @param input    [row, in], in the type of the head
/// @param targets  int64 [row], each in [0, out)
/// @returns float64 [row]; NaN if a logit of the row is NaN or infinite
/// @throws InternalError  as linear
at::Tensor target_losses(const at::Tensor& input, const PackedWeight& head, const at::Tensor& targets,
                         double soft_cap = 0);

}  // namespace gainlens::kernels
