#include "kernels/gradient/recomputed.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A function that a node of a graph can hold.
struct HeldFunction : torch::CustomClassHolder {
  explicit HeldFunction(TensorFunction function) : f(std::move(function)) {}
  TensorFunction f;
};

/// The inputs as leaves of a graph of their own.
variable_list leaves_of(const variable_list& inputs) {
  variable_list leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.detach().set_requires_grad(input.requires_grad()));
  return leaves;
}

/// `tensors`: the inputs, and one without elements that needs a gradient. Without it there would be no node if the
/// gradients were those of weights alone.
struct RecomputedNode : torch::autograd::Function<RecomputedNode> {
  static variable_list forward(AutogradContext* context, at::TensorList tensors,
                               const c10::intrusive_ptr<HeldFunction>& held) {
    const variable_list inputs(tensors.begin(), tensors.end() - 1);
    variable_list outputs;
    {
      const at::AutoGradMode gradients(true);
      for (const at::Tensor& output : held->f(leaves_of(inputs))) outputs.push_back(output.detach());
    }
    context->save_for_backward(inputs);
    context->set_materialize_grads(false);
    context->saved_data["function"] = c10::IValue::make_capsule(c10::intrusive_ptr<torch::CustomClassHolder>(held));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("recomputed");
    const variable_list inputs = context->get_saved_variables();
    const auto held = c10::static_intrusive_pointer_cast<HeldFunction>(context->saved_data["function"].toCapsule());
    variable_list leaves;
    {
      const at::AutoGradMode with_gradients(true);
      leaves = leaves_of(inputs);
      const variable_list outputs = held->f(leaves);
      ASSERT(outputs.size() == gradients.size(), "recomputed: {} outputs, before {}", outputs.size(), gradients.size());
      variable_list reached, upstream;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
        reached.push_back(outputs[i]);
        upstream.push_back(gradients[i]);
      }
      if (!reached.empty()) torch::autograd::backward(reached, upstream);
    }
    variable_list found;
    for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
    found.resize(inputs.size() + 2);  // the tensor without elements, and the function
    return found;
  }
};

}  // namespace

std::vector<at::Tensor> recomputed(const TensorFunction& f, const std::vector<at::Tensor>& inputs) {
  ASSERT(!inputs.empty(), "recomputed: no inputs");
  if (!at::GradMode::is_enabled()) return f(inputs);
  std::vector<at::Tensor> tensors = inputs;
  tensors.push_back(at::empty({0}, inputs[0].options().dtype(at::kFloat)).set_requires_grad(true));
  return RecomputedNode::apply(at::TensorList(tensors), c10::make_intrusive<HeldFunction>(f));
}

}  // namespace gainlens::kernels
