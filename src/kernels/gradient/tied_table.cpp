#include "kernels/gradient/tied_table.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct TiedTableNode : torch::autograd::Function<TiedTableNode> {
  static variable_list forward(AutogradContext* context, const at::Tensor& table) {
    context->set_materialize_grads(false);
    // A view would refuse to be read after the optimiser has written to the table.
    return {table.variable_data(), table.variable_data()};
  }

  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    check_first_derivative("tied_table");
    const at::Tensor &rows = gradients[0], &head = gradients[1];
    if (!rows.defined()) return {head};
    if (!head.defined()) return {rows};
    // Nobody else reads it: the head's gradient is made for this node.
    return {at::Tensor(head).add_(rows)};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> tied_table(const at::Tensor& table) {
  ASSERT(table.dim() == 2 && table.is_leaf() && table.requires_grad(), "a table that is no parameter");
  const at::AutoGradMode enabled(true);
  const variable_list both = TiedTableNode::apply(table);
  return {both[0], both[1]};
}

}  // namespace gainlens::kernels
