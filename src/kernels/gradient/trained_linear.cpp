#include "kernels/gradient/trained_linear.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/matrix_product.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [.., columns] as a matrix whose rows are contiguous.
at::Tensor as_matrix(const at::Tensor& x) {
  return x.flatten(0, -2).contiguous();
}

/// A weight as matrix_product takes it: a copy only if neither rows nor columns are contiguous.
at::Tensor as_weight(const at::Tensor& weight) {
  return weight.stride(0) == 1 || weight.stride(1) == 1 ? weight : weight.contiguous();
}

std::vector<std::int64_t> with_last(const at::Tensor& x, std::int64_t last) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

/// `tensors` has no undefined ones, in this order: the input, the weights, the biases that exist, the residual if there
/// is one. Gradients are numbered in this order. biased[i] is 1 if weight i has a bias, else 0.
struct LinearsNode : torch::autograd::Function<LinearsNode> {
  static variable_list forward(AutogradContext* context, at::TensorList tensors,
                               const std::vector<std::int64_t>& biased, bool adds) {
    const std::size_t layers = biased.size();
    const at::Tensor rows = as_matrix(tensors[0]);
    // Each side is kept only if the gradient of the other one is asked for.
    const bool input_needed =
        std::any_of(tensors.begin() + 1, tensors.begin() + 1 + static_cast<std::ptrdiff_t>(layers),
                    [](const at::Tensor& weight) { return weight.requires_grad(); });
    const bool weights_needed = tensors[0].requires_grad();
    variable_list saved{input_needed ? rows : at::Tensor()}, outputs;
    std::size_t next = 1 + layers;
    for (std::size_t i = 0; i < layers; ++i) {
      const at::Tensor weight = as_weight(tensors[1 + i]);
      MatrixProductOptions options;
      if (biased[i] != 0) options.bias = tensors[next++].contiguous();
      if (adds) options.residual = as_matrix(tensors.back());
      // Not a view in the eyes of autograd: the caller may change it in place.
      outputs.push_back(
          at::_unsafe_view(matrix_product(rows, weight.t(), options), with_last(tensors[0], weight.size(0))));
      saved.push_back(weights_needed ? weight : at::Tensor());
    }
    context->save_for_backward(saved);
    context->set_materialize_grads(false);
    context->saved_data["sizes"] = tensors[0].sizes().vec();
    context->saved_data["biased"] = biased;
    context->saved_data["adds"] = adds;
    context->saved_data["tensors"] = static_cast<std::int64_t>(tensors.size());
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_linear");
    const variable_list saved = context->get_saved_variables();
    const std::vector<std::int64_t> biased = context->saved_data["biased"].toIntVector();
    const std::size_t layers = biased.size();
    const auto tensors = static_cast<std::size_t>(context->saved_data["tensors"].toInt());
    variable_list found(tensors + 2);  // two more for the inputs that are no tensors
    at::Tensor input_gradient;
    std::size_t next = 1 + layers;
    for (std::size_t i = 0; i < layers; ++i) {
      const std::size_t bias_place = biased[i] != 0 ? next++ : 0;
      if (!gradients[i].defined()) continue;  // nobody uses this output
      const at::Tensor upstream = as_matrix(gradients[i]);
      if (context->needs_input_grad(0))
        input_gradient = matrix_product(upstream, saved[1 + i], {.residual = input_gradient, .output = input_gradient});
      if (context->needs_input_grad(1 + i)) found[1 + i] = matrix_product(upstream.t(), saved[0]);
      if (bias_place != 0 && context->needs_input_grad(bias_place)) found[bias_place] = upstream.sum(0);
    }
    if (input_gradient.defined()) found[0] = input_gradient.view(context->saved_data["sizes"].toIntVector());
    if (context->saved_data["adds"].toBool() && context->needs_input_grad(next)) found[next] = gradients[0];
    return found;
  }
};

}  // namespace

at::Tensor trained_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& residual) {
  std::vector<at::Tensor> tensors{input, weight};
  if (bias.defined()) tensors.push_back(bias);
  if (residual.defined()) tensors.push_back(residual);
  return LinearsNode::apply(at::TensorList(tensors), std::vector<std::int64_t>{bias.defined()}, residual.defined())[0];
}

std::vector<at::Tensor> trained_linears(const at::Tensor& input, const std::vector<at::Tensor>& weights,
                                        const std::vector<at::Tensor>& biases) {
  ASSERT(!weights.empty() && weights.size() == biases.size(), "{} weights and {} biases", weights.size(),
         biases.size());
  std::vector<at::Tensor> tensors{input};
  tensors.insert(tensors.end(), weights.begin(), weights.end());
  std::vector<std::int64_t> biased;
  for (const at::Tensor& bias : biases) {
    biased.push_back(bias.defined());
    if (bias.defined()) tensors.push_back(bias);
  }
  return LinearsNode::apply(at::TensorList(tensors), biased, false);
}

}  // namespace gainlens::kernels
