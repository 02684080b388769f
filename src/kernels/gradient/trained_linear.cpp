#include "kernels/gradient/trained_linear.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/matrix_product.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [.., columns] as a matrix whose rows are contiguous.
at::Tensor as_matrix(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}

std::vector<std::int64_t> with_last(const at::Tensor& x, std::int64_t last) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

/// Autograd takes tensors that exist only, in one list, and counts gradients in its order: the input, the weights, the
/// biases that exist, the residual if it exists. `biased` has a number for each weight, not 0 if it has a bias.
struct LinearsNode : torch::autograd::Function<LinearsNode> {
  static variable_list forward(AutogradContext* context, at::TensorList tensors,
                               const std::vector<std::int64_t>& biased, bool adds) {
    const std::size_t layers = biased.size();
    const at::Tensor rows = as_matrix(tensors[0]);
    variable_list saved{rows}, outputs;
    std::size_t next = 1 + layers;
    for (std::size_t i = 0; i < layers; ++i) {
      const at::Tensor weight = tensors[1 + i].contiguous();
      MatrixProductOptions options;
      if (biased[i] != 0) options.bias = tensors[next++].contiguous();
      if (adds) options.residual = as_matrix(tensors.back());
      outputs.push_back(matrix_product(rows, weight.t(), options).view(with_last(tensors[0], weight.size(0))));
      saved.push_back(weight);
    }
    context->save_for_backward(saved);
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
    at::Tensor of_input;
    std::size_t next = 1 + layers;
    for (std::size_t i = 0; i < layers; ++i) {
      const at::Tensor upstream = as_matrix(gradients[i]);
      if (context->needs_input_grad(0))
        of_input = matrix_product(upstream, saved[1 + i], {.residual = of_input, .output = of_input});
      if (context->needs_input_grad(1 + i)) found[1 + i] = matrix_product(upstream.t(), saved[0]);
      if (biased[i] == 0) continue;
      if (context->needs_input_grad(next)) found[next] = upstream.sum(0);
      ++next;
    }
    if (of_input.defined()) found[0] = of_input.view(context->saved_data["sizes"].toIntVector());
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
