#include "kernels/gradient/dropout.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// An unsigned number as libtorch's int64 holds it.
std::int64_t as_signed(std::uint64_t x) {
  return static_cast<std::int64_t>(x);
}

/// x >> shift of the unsigned numbers.
at::Tensor shifted(const at::Tensor& x, std::int64_t shift) {
  return x.bitwise_right_shift(shift).bitwise_and(as_signed(~std::uint64_t{0} >> shift));
}

at::Tensor mixed(at::Tensor z) {
  z = z.bitwise_xor(shifted(z, 30)) * as_signed(DropoutRow::first_multiplier);
  z = z.bitwise_xor(shifted(z, 27)) * as_signed(DropoutRow::second_multiplier);
  return z.bitwise_xor(shifted(z, 31));
}

at::Tensor multiplied(const at::Tensor& x, const Dropout& dropout) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) {
    const at::Tensor rows = at::arange(x.size(0), x.options().dtype(at::kLong).requires_grad(false));
    return x * dropout_factors(dropout, rows, x.size(1), x);
  }
  const at::Tensor from = x.contiguous();
  at::Tensor to = at::empty_like(from);
  const std::int64_t columns = x.size(1);
  const auto* const source = from.const_data_ptr<float>();
  auto* const target = to.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0), std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(columns, 1)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row) {
                       const float* const numbers = source + row * columns;
                       float* const place = target + row * columns;
                       DropoutRow(dropout, dropout.first_row + row).factors(columns, place);
                       for (std::int64_t i = 0; i < columns; ++i) place[i] *= numbers[i];
                     }
                   });
  return to;
}

struct DropoutNode : torch::autograd::Function<DropoutNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double rate, std::int64_t key,
                            std::int64_t first_row) {
    context->saved_data["rate"] = rate;
    context->saved_data["key"] = key;
    context->saved_data["first_row"] = first_row;
    return multiplied(x, {rate, static_cast<std::uint64_t>(key), first_row});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("dropped");
    const Dropout dropout{context->saved_data["rate"].toDouble(),
                          static_cast<std::uint64_t>(context->saved_data["key"].toInt()),
                          context->saved_data["first_row"].toInt()};
    return {multiplied(gradients[0], dropout), {}, {}, {}};
  }
};

}  // namespace

at::Tensor dropout_factors(const Dropout& dropout, const at::Tensor& rows, std::int64_t columns,
                           const at::Tensor& like) {
  const at::Tensor state =
      mixed((rows + dropout.first_row + 1) * as_signed(DropoutRow::row_step) + as_signed(dropout.key));
  const at::Tensor pairs = at::arange((columns + 1) / 2, rows.options()) * as_signed(DropoutRow::column_step);
  const at::Tensor bits = mixed(state.unsqueeze(-1) + pairs);
  const at::Tensor halves = at::stack({bits.bitwise_and(as_signed(DropoutRow::half)), shifted(bits, 32)}, -1);
  const at::Tensor kept = halves.flatten(-2).narrow(-1, 0, columns).ge(as_signed(DropoutRow::threshold(dropout.rate)));
  return kept.to(like.scalar_type()) * (1 / (1 - dropout.rate));
}

at::Tensor dropped(const at::Tensor& x, const Dropout& dropout) {
  ASSERT(dropout.rate >= 0 && dropout.rate < 1, "dropout rate {}", dropout.rate);
  ASSERT(x.dim() == 2, "dropout of a tensor that is no matrix");
  if (dropout.rate == 0) return x;
  return DropoutNode::apply(x, dropout.rate, as_signed(dropout.key), dropout.first_row);
}

}  // namespace gainlens::kernels
