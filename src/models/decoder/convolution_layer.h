#pragma once

#include "models/decoder/decoder_weights.h"
#include "models/decoder/projection.h"

#include <ATen/core/Tensor.h>

namespace gainlens::models {

/// A gated short convolution: what a layer of short convolutions has in place of softmax attention.
///
/// With projections b, c and x of the input, the result is the projection of c * convolution(b * x). The convolution is
/// causal, one for each channel. Blocks of positions follow each other, so memory for more than the result does not
/// grow with the text.
/// Source: Lfm2ShortConv of Hugging Face transformers.
///
/// @param rest      the weights of the layer that are no projections
/// @param input     [batch, position, width]
/// @param residual  [batch, position, width], added to the result; may be undefined
/// @param past      [batch, kernel - 1, width] b * x of the last positions before; undefined: there are none. It is set
///     to those of the last positions of the input. Null: there are none before
/// @returns [batch, position, width]
at::Tensor convolution_layer(const LayerProjections& projections, const LayerWeights& rest, const at::Tensor& input,
                             const at::Tensor& residual, at::Tensor* past = nullptr);

}  // namespace gainlens::models
