#include "kernels/gradient/row_losses.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace gainlens::kernels {
namespace row_losses_test {

/// Losses, and the gradients of sum(loss^2), in the textbook form.
std::vector<at::Tensor> textbook(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                                 double cap) {
  const at::Tensor rows = input.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor outputs = head.detach().to(at::kDouble).requires_grad_(true);
  at::Tensor logits = rows.matmul(outputs.t());
  if (cap != 0) logits = at::tanh(logits / cap) * cap;
  const at::Tensor losses = -logits.log_softmax(1).gather(1, targets.unsqueeze(1)).squeeze(1);
  losses.square().sum().backward();
  return {losses.detach(), rows.grad(), outputs.grad()};
}

TEST(RowLosses, AndTheirGradientsAreThoseOfTheTextbook) {
  at::manual_seed(1);
  const at::Tensor input = at::randn({7, 12}, at::kDouble), head = at::randn({30, 12}, at::kDouble);
  const at::Tensor targets = at::randint(30, {7}, at::kLong);
  for (const double cap : {0.0, 2.0}) {
    const std::vector<at::Tensor> expected = textbook(input, head, targets, cap);
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      for (const std::int64_t bytes : {1, 1000, 1 << 20}) {  // one row at a time, a few, all
        const at::Tensor rows = input.to(type).detach().requires_grad_(true);
        const at::Tensor outputs = head.to(type).detach().requires_grad_(true);
        const at::Tensor losses = row_losses(rows, outputs, targets, {.soft_cap = cap, .logit_bytes = bytes});
        EXPECT_EQ(losses.scalar_type(), type == at::kDouble ? at::kDouble : at::kFloat);
        losses.square().sum().backward();
        const double tolerance = type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 0.05;
        const std::vector<at::Tensor> found{losses.detach(), rows.grad(), outputs.grad()};
        for (std::size_t i = 0; i < found.size(); ++i) {
          const at::Tensor difference = found[i].to(at::kDouble) - expected[i];
          EXPECT_LT(difference.norm().item<double>(), tolerance * expected[i].norm().item<double>()) << i;
        }
      }
    }
  }
}

TEST(RowLosses, AFrozenHeadGetsNoGradient) {
  const at::Tensor head = at::ones({5, 3}), input = at::ones({2, 3}).requires_grad_(true);
  row_losses(input, head, at::zeros({2}, at::kLong)).sum().backward();
  EXPECT_TRUE(input.grad().defined());
  EXPECT_FALSE(head.grad().defined());
  EXPECT_THROW(row_losses(input, head, at::zeros({3}, at::kLong)), InternalError);
}

}  // namespace row_losses_test
}  // namespace gainlens::kernels
