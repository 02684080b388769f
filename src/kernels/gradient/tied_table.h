#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace gainlens::kernels {

/// The table of a model whose output head is its embedding, for each of its two uses: the first gives rows, by
/// at::embedding with sparse gradients, the second is the matrix of the head. The gradient of the rows is added to that
/// of the head in place. Left to itself, libtorch 2.11 adds them into a third tensor as large as the table.
/// Both share the table's memory and see its changes, but changes made to them are not checked: they are not views.
/// Backward passes may go through them any number of times. There are no second derivatives.
/// @param table  [row, width]; a leaf that needs a gradient
std::pair<at::Tensor, at::Tensor> tied_table(const at::Tensor& table);

}  // namespace gainlens::kernels
