#include "kernels/gradient/tied_table.h"

#include "core/error.h"
#include "kernels/counted_memory.h"
#include "kernels/gradient/row_losses.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace gainlens::kernels {
namespace tied_table_test {

at::Tensor loss_of(const at::Tensor& rows, const at::Tensor& head, const at::Tensor& ids) {
  const at::Tensor embedded =
      at::embedding(rows, ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true);
  return row_losses(embedded.tanh(), head, ids.roll(1)).sum();
}

TEST(TiedTable, HasTheGradientOfBothUsesInEveryPass) {
  at::manual_seed(1);
  const at::Tensor table = at::randn({20, 6}, at::kDouble).requires_grad_(true);
  const at::Tensor plain = table.detach().clone().requires_grad_(true);
  const auto [rows, head] = tied_table(table);
  const at::Tensor ids = at::tensor({3, 3, 7, 19}, at::kLong);  // one of them twice
  for (int pass = 0; pass < 3; ++pass) {
    loss_of(rows, head, ids).backward();
    row_losses(at::embedding(plain, ids).tanh(), plain, ids.roll(1)).sum().backward();
    EXPECT_LT((table.grad() - plain.grad()).abs().max().item<double>(), 1e-12) << pass;
    if (pass == 0) continue;  // the next pass adds to the gradient of this one
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& weights : {table, plain}) {
      at::Tensor(weights).sub_(weights.grad(), 0.1);  // as an optimiser: the next pass sees it
      at::Tensor(weights).mutable_grad().reset();
    }
    EXPECT_TRUE(rows.equal(table) && head.equal(table));
  }
}

TEST(TiedTable, OneUseAloneHasItsGradient) {
  const at::Tensor table = at::ones({4, 2}).requires_grad_(true);
  const auto [rows, head] = tied_table(table);
  head.sum().backward();
  EXPECT_TRUE(table.grad().equal(at::ones({4, 2})));
  at::Tensor(table).mutable_grad().reset();
  at::embedding(rows, at::zeros({1}, at::kLong)).sum().backward();
  EXPECT_TRUE(table.grad().equal(at::tensor({1, 1, 0, 0, 0, 0, 0, 0}, at::kFloat).view({4, 2})));
}

TEST(TiedTable, TakesNoMemoryBesideTheGradient) {
  const std::int64_t count = 50000, width = 64, bytes = count * width * 4;
  const at::Tensor table = at::zeros({count, width}).requires_grad_(true);
  const auto [rows, head] = tied_table(table);
  const at::Tensor ids = at::tensor({3, 7}, at::kLong), loss = loss_of(rows, head, ids);
  EXPECT_LT(testing::peak_bytes_of([&] { loss.backward(); }), bytes + bytes / 10);
  EXPECT_THROW(tied_table(at::zeros({2, 2})), InternalError);
}

}  // namespace tied_table_test
}  // namespace gainlens::kernels
