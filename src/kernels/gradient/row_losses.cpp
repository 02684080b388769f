#include "kernels/gradient/row_losses.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/matrix_product.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// left right + sum; `sum` may be undefined, and is added to in place.
at::Tensor product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& sum = {}) {
  if (left.is_cpu() && left.scalar_type() == at::kFloat)
    return matrix_product(left, right, {.residual = sum, .output = sum});
  return sum.defined() ? sum.addmm_(left, right) : at::mm(left, right);
}

/// The logits of some rows, after the cap.
at::Tensor logits_of(const at::Tensor& rows, const at::Tensor& head, double soft_cap) {
  at::Tensor logits = product(rows, head.t()).to(wide_type(rows));
  if (soft_cap != 0) logits.div_(soft_cap).tanh_().mul_(soft_cap);
  return logits;
}

/// Logits become their gradients.
/// @param total     [row] log-sum-exp of each row
/// @param upstream  [row] gradients of the losses
void differentiate(at::Tensor& logits, const at::Tensor& total, const at::Tensor& target, const at::Tensor& upstream,
                   double soft_cap) {
  const at::Tensor slope = soft_cap == 0 ? at::Tensor() : 1 - (logits / soft_cap).square();
  logits.sub_(total.unsqueeze(1)).exp_();
  logits.scatter_add_(1, target.unsqueeze(1), at::full({logits.size(0), 1}, -1, logits.options()));
  if (slope.defined()) logits.mul_(slope);
  logits.mul_(upstream.unsqueeze(1));
}

struct RowLossNode : torch::autograd::Function<RowLossNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& head,
                            const at::Tensor& targets, double soft_cap, std::int64_t logit_bytes) {
    const at::Tensor rows = input.detach().contiguous(), outputs = head.detach().contiguous();
    const at::TensorOptions wide = rows.options().dtype(wide_type(rows));
    const std::int64_t count = rows.size(0);
    const std::int64_t bytes_of_row = outputs.size(0) * static_cast<std::int64_t>(wide.dtype().itemsize());
    const std::int64_t at_once = std::clamp<std::int64_t>(logit_bytes / bytes_of_row, 1, count);
    const at::Tensor losses = at::empty({count}, wide), totals = at::empty({count}, wide);
    at::Tensor logits;
    for (std::int64_t begin = 0; begin < count; begin += at_once) {
      const std::int64_t part = std::min(at_once, count - begin);
      logits = logits_of(rows.narrow(0, begin, part), outputs, soft_cap);
      const at::Tensor total = logits.logsumexp(1);
      totals.narrow(0, begin, part).copy_(total);
      const at::Tensor target = targets.narrow(0, begin, part).unsqueeze(1);
      losses.narrow(0, begin, part).copy_(total - logits.gather(1, target).squeeze(1));
    }
    context->save_for_backward({rows, outputs, targets, totals, at_once == count ? logits : at::Tensor()});
    context->saved_data["soft_cap"] = soft_cap;
    context->saved_data["at_once"] = at_once;
    return losses;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("row_losses");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &head = saved[1], &targets = saved[2], &totals = saved[3];
    const double soft_cap = context->saved_data["soft_cap"].toDouble();
    const std::int64_t at_once = context->saved_data["at_once"].toInt(), count = rows.size(0);
    std::vector<at::Tensor> row_gradients;
    at::Tensor head_gradient;
    for (std::int64_t begin = 0; begin < count; begin += at_once) {
      const std::int64_t size = std::min(at_once, count - begin);
      const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, size); };
      at::Tensor logits = saved[4].defined() ? saved[4] : logits_of(part(rows), head, soft_cap);
      differentiate(logits, part(totals), part(targets), part(gradients[0]), soft_cap);
      const at::Tensor own = logits.to(rows.scalar_type());
      if (context->needs_input_grad(0)) row_gradients.push_back(product(own, head));
      if (context->needs_input_grad(1)) head_gradient = product(own.t(), part(rows), head_gradient);
    }
    return {row_gradients.empty() ? at::Tensor() : at::cat(row_gradients), head_gradient, {}, {}, {}};
  }
};

}  // namespace

at::Tensor row_losses(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                      const RowLossOptions& options) {
  ASSERT(input.dim() == 2 && targets.dim() == 1 && targets.size(0) == input.size(0), "one target for each row");
  ASSERT(targets.scalar_type() == at::kLong && input.size(0) > 0, "targets must be int64, at least one");
  return RowLossNode::apply(input, head, targets, options.soft_cap, options.logit_bytes);
}

}  // namespace gainlens::kernels
