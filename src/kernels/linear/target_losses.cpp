#include "core/check.h"
#include "kernels/fixed_sizes.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/tile_products.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace gainlens::kernels {
namespace {

/// What one segment of the vocabulary adds to a row.
struct Part {
  LogSumExp sum;
  float target = std::numeric_limits<float>::quiet_NaN();  ///< its logit, if it lies in the segment
};
static_assert(sizeof(Part) == loss_part_bytes);

double loss_of(const Part* parts, std::int64_t segments, std::int64_t rows, std::int64_t target_segment) {
  float maximum = parts[0].sum.maximum;
  for (std::int64_t segment = 1; segment < segments; ++segment)
    maximum = std::max(maximum, parts[segment * rows].sum.maximum);
  double total = 0;
  for (std::int64_t segment = 0; segment < segments; ++segment) {
    const LogSumExp& sum = parts[segment * rows].sum;
    total += sum.total * std::exp(static_cast<double>(sum.maximum) - static_cast<double>(maximum)) +
             static_cast<double>(sum.poison);
  }
  return std::log(total) + static_cast<double>(maximum) - static_cast<double>(parts[target_segment * rows].target);
}

at::Tensor losses_by_libtorch(const at::Tensor& input, const PackedWeight& head, const at::Tensor& targets,
                              double soft_cap) {
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, logits_per_block / head.outputs());
  std::vector<at::Tensor> losses;
  for (std::int64_t begin = 0; begin < input.size(0); begin += rows_at_once) {
    const std::int64_t end = std::min(begin + rows_at_once, input.size(0));
    at::Tensor logits = at::linear(input.slice(0, begin, end), head.plain());
    if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
    const at::Tensor poison = at::isfinite(logits).all(-1, true).logical_not();  // a cap would hide an overflow
    if (soft_cap != 0) logits = at::tanh(logits / soft_cap) * soft_cap;
    const at::Tensor target = logits.gather(-1, targets.slice(0, begin, end).unsqueeze(1));
    losses.push_back((logits.logsumexp(-1, true) - target)
                         .masked_fill(poison, std::numeric_limits<double>::quiet_NaN())
                         .to(at::kDouble)
                         .squeeze(1));
  }
  return at::cat(losses);
}

}  // namespace

at::Tensor target_losses(const at::Tensor& input, const PackedWeight& head, const at::Tensor& targets,
                         double soft_cap) {
  ASSERT(head.defined() && input.dim() == 2 && input.size(1) == head.inputs() && input.scalar_type() == head.type(),
         "rows that do not fit the head");
  ASSERT(targets.dim() == 1 && targets.size(0) == input.size(0) && targets.scalar_type() == at::kLong,
         "one target for each row");
  ASSERT(!is_tracked(input), "a product with a packed weight has no gradient");
  const at::Tensor wanted = targets.contiguous();
  const std::int64_t* const target = wanted.const_data_ptr<std::int64_t>();
  const std::int64_t count = input.size(0), columns = head.panel_columns();
  for (std::int64_t row = 0; row < count; ++row)
    ASSERT(target[row] >= 0 && target[row] < head.outputs(), "target {} of {}", target[row], head.outputs());
  if (count == 0) return at::empty({0}, at::kDouble);
  if (head.kernel() == ProductKernel::libtorch) return losses_by_libtorch(input, head, wanted, soft_cap);
  const at::Tensor rows = input.stride(1) == 1 ? input : input.contiguous();

  const std::int64_t segment_panels = loss_segment_outputs / columns, tile_panels = loss_tile_outputs / columns;
  const std::int64_t segments = blocks_of(head.panels(), segment_panels);
  const std::int64_t rows_per_block = cut_into_tasks(head, count, head.panels()).rows_per_block;
  const std::int64_t row_blocks = blocks_of(count, rows_per_block);
  std::vector<Part> parts(static_cast<std::size_t>(segments * count));  // [segment, row]
  const auto add_segment = [&](TileProducts& products, std::int64_t task) {
    const std::int64_t segment = task / row_blocks, first_row = task % row_blocks * rows_per_block;
    const std::int64_t block = std::min(rows_per_block, count - first_row);
    products.take_rows(rows, first_row, block);
    Part* const row_parts = parts.data() + segment * count + first_row;
    std::vector<LogSumExp> sums(static_cast<std::size_t>(block));
    const std::int64_t end = std::min((segment + 1) * segment_panels, head.panels());
    for (std::int64_t panel = segment * segment_panels; panel < end; panel += tile_panels) {
      const std::int64_t panels = std::min(tile_panels, end - panel);
      float* const tile = products.multiply(head, panel, panels);
      const std::int64_t first = panel * columns, outputs = std::min(panels * columns, head.outputs() - first);
      tile_kernels().absorb_logits(block, outputs, tile, products.stride(), static_cast<float>(soft_cap), sums.data());
      for (std::int64_t row = 0; row < block; ++row) {
        const std::int64_t column = target[first_row + row] - first;
        if (column >= 0 && column < outputs) row_parts[row].target = tile[row * products.stride() + column];
      }
    }
    for (std::int64_t row = 0; row < block; ++row) row_parts[row].sum = sums[static_cast<std::size_t>(row)];
  };
  // The rows of a segment's tasks follow each other, so that its weights are read from memory once.
  run_tasks_with(segments * row_blocks, [&](std::int64_t) {
    return [&, products = std::make_unique<TileProducts>(head, rows_per_block, tile_panels)](std::int64_t task) {
      add_segment(*products, task);
    };
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the function object owns it
  });

  at::Tensor losses = at::empty({count}, at::kDouble);
  auto* const loss = losses.mutable_data_ptr<double>();
  for (std::int64_t row = 0; row < count; ++row)
    loss[row] = loss_of(parts.data() + row, segments, count, target[row] / columns / segment_panels);
  return losses;
}

}  // namespace gainlens::kernels
