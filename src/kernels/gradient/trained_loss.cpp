#include "kernels/gradient/trained_loss.h"

#include "core/check.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/matrix_product.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/parallel_tasks.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows of a block, and outputs of a tile: a tile stays in the second-level cache.
constexpr std::int64_t block_rows = 512, tile_outputs = 512;

/// Most sums of the gradient of a block of rows that are formed beside each other. Another value gives other bits.
constexpr std::int64_t max_groups = 16;

/// The loss of a block of rows after another, with the gradients of both sides.
class LossBlocks {
 public:
  LossBlocks(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
             const TrainedLossOptions& options)
      : input_(input),
        head_(head),
        target_(targets.const_data_ptr<std::int64_t>()),
        cap_(static_cast<float>(options.soft_cap)),
        rows_at_once_(std::min(block_rows, input.size(0))),
        tiles_(blocks_of(head.size(0), tile_outputs)),
        keeps_logits_(rows_at_once_ * tiles_ * tile_outputs * 4 <= options.logit_bytes),
        input_gradient_(at::empty_like(input)),
        head_gradient_(at::zeros_like(head)),
        parts_(at::empty({groups(), rows_at_once_, input.size(1)}, input.options())),
        sums_(static_cast<std::size_t>(tiles_ * rows_at_once_)),
        target_logits_(static_cast<std::size_t>(rows_at_once_)),
        log_totals_(static_cast<std::size_t>(rows_at_once_)) {
    if (keeps_logits_) logits_ = at::empty({tiles_, rows_at_once_, tile_outputs}, input.options());
  }

  /// Sum of the losses of all rows.
  double run() {
    double sum = 0;
    for (std::int64_t begin = 0; begin < input_.size(0); begin += rows_at_once_)
      sum += block(begin, std::min(rows_at_once_, input_.size(0) - begin));
    return sum;
  }
  const at::Tensor& input_gradient() const { return input_gradient_; }
  const at::Tensor& head_gradient() const { return head_gradient_; }

 private:
  std::int64_t tiles_of_group() const { return blocks_of(tiles_, max_groups); }
  std::int64_t groups() const { return blocks_of(tiles_, tiles_of_group()); }
  std::int64_t outputs_of(std::int64_t tile) const {
    return std::min(tile_outputs, head_.size(0) - tile * tile_outputs);
  }
  at::Tensor head_of(const at::Tensor& of, std::int64_t tile) const {
    return of.narrow(0, tile * tile_outputs, outputs_of(tile));
  }
  /// Room for the logits of a tile, [row, tile_outputs].
  at::Tensor room(std::int64_t tile) const {
    return keeps_logits_ ? logits_[tile] : at::empty({rows_at_once_, tile_outputs}, input_.options());
  }

  double block(std::int64_t begin, std::int64_t rows) {
    const at::Tensor input = input_.narrow(0, begin, rows);
    run_tasks_with(tiles_, [&](std::int64_t) {
      return [&, room = keeps_logits_ ? at::Tensor() : this->room(0)](std::int64_t tile) {
        const at::NoGradGuard no_gradients;
        absorb(input, begin, tile, keeps_logits_ ? this->room(tile) : room);
      };
    });
    const double sum = total(rows);
    run_tasks_with(groups(), [&](std::int64_t) {
      return [&, room = keeps_logits_ ? at::Tensor() : this->room(0)](std::int64_t group) {
        const at::NoGradGuard no_gradients;
        const std::int64_t first = group * tiles_of_group(), last = std::min(first + tiles_of_group(), tiles_);
        for (std::int64_t tile = first; tile < last; ++tile)
          add_gradients(input, begin, tile, keeps_logits_ ? this->room(tile) : room, parts_[group], tile > first);
      };
    });
    at::Tensor row_gradients = input_gradient_.narrow(0, begin, rows);
    at::sum_out(row_gradients, parts_.narrow(1, 0, rows), 0);
    return sum;
  }

  /// Computes the logits of a tile, and what they add to the totals of the rows.
  void absorb(const at::Tensor& input, std::int64_t begin, std::int64_t tile, const at::Tensor& room) {
    const std::int64_t rows = input.size(0), outputs = outputs_of(tile), first = tile * tile_outputs;
    const at::Tensor logits = room.narrow(0, 0, rows).narrow(1, 0, outputs);
    matrix_product(input, head_of(head_, tile).t(), {.output = logits});
    auto* const numbers = room.mutable_data_ptr<float>();
    LogSumExp* const sums = sums_.data() + tile * rows_at_once_;
    std::fill_n(sums, rows, LogSumExp());
    tile_kernels().absorb_logits(rows, outputs, numbers, tile_outputs, cap_, sums);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t column = target_[begin + row] - first;
      if (column >= 0 && column < outputs)
        target_logits_[static_cast<std::size_t>(row)] = numbers[row * tile_outputs + column];
    }
  }

  /// The log-sum-exp of each row. Returns the sum of the losses.
  double total(std::int64_t rows) {
    double losses = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto sum_of = [&](std::int64_t tile) -> const LogSumExp& {
        return sums_[static_cast<std::size_t>(tile * rows_at_once_ + row)];
      };
      float maximum = sum_of(0).maximum;
      for (std::int64_t tile = 1; tile < tiles_; ++tile) maximum = std::max(maximum, sum_of(tile).maximum);
      double sum = 0;
      for (std::int64_t tile = 0; tile < tiles_; ++tile) {
        sum += sum_of(tile).total * std::exp(static_cast<double>(sum_of(tile).maximum) - static_cast<double>(maximum)) +
               static_cast<double>(sum_of(tile).poison);
      }
      const double log_total = std::log(sum) + static_cast<double>(maximum);
      log_totals_[static_cast<std::size_t>(row)] = static_cast<float>(log_total);
      losses += log_total - static_cast<double>(target_logits_[static_cast<std::size_t>(row)]);
    }
    return losses;
  }

  /// Gradients of a tile: of the head's rows, and what the tile adds to those of the input.
  void add_gradients(const at::Tensor& input, std::int64_t begin, std::int64_t tile, const at::Tensor& room,
                     const at::Tensor& part, bool add) {
    const std::int64_t rows = input.size(0), outputs = outputs_of(tile), first = tile * tile_outputs;
    if (!keeps_logits_) absorb(input, begin, tile, room);
    auto* const numbers = room.mutable_data_ptr<float>();
    tile_kernels().logit_gradients(rows, outputs, numbers, tile_outputs, cap_, log_totals_.data());
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t column = target_[begin + row] - first;
      if (column < 0 || column >= outputs) continue;
      const float bounded = cap_ == 0 ? 0 : target_logits_[static_cast<std::size_t>(row)] / cap_;
      numbers[row * tile_outputs + column] -= 1 - bounded * bounded;
    }
    const at::Tensor shares = room.narrow(0, 0, rows).narrow(1, 0, outputs);
    const at::Tensor row_gradients = part.narrow(0, 0, rows), head_gradient = head_of(head_gradient_, tile);
    matrix_product(shares, head_of(head_, tile),
                   {.residual = add ? row_gradients : at::Tensor(), .output = row_gradients});
    matrix_product(shares.t(), input, {.residual = head_gradient, .output = head_gradient});
  }

  at::Tensor input_, head_;
  const std::int64_t* target_;
  float cap_;
  std::int64_t rows_at_once_, tiles_;
  bool keeps_logits_;
  at::Tensor input_gradient_, head_gradient_;
  at::Tensor parts_;                               // [group, row, in]: gradients of a block of the input
  at::Tensor logits_;                              // [tile, row, tile_outputs], if they are kept
  std::vector<LogSumExp> sums_;                    // [tile, row]
  std::vector<float> target_logits_, log_totals_;  // [row]
};

/// The loss of all rows with its gradients.
struct LossWithGradients {
  at::Tensor loss, input_gradient, head_gradient;
};

/// Computes by library calls over blocks of rows, on any device. No number is read back from the device.
LossWithGradients loss_by_rows(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                               const TrainedLossOptions& options) {
  const std::int64_t bytes_of_row = head.size(0) * static_cast<std::int64_t>(input.itemsize());
  const std::int64_t rows_at_once = std::clamp<std::int64_t>(options.logit_bytes / bytes_of_row, 1, block_rows);
  LossWithGradients found{at::zeros({}, input.options()), at::empty_like(input), at::zeros_like(head)};
  for (std::int64_t begin = 0; begin < input.size(0); begin += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, input.size(0) - begin);
    const at::Tensor part = input.narrow(0, begin, rows), target = targets.narrow(0, begin, rows).unsqueeze(1);
    at::Tensor logits = at::mm(part, head.t()), slope;  // [row, out]
    if (options.soft_cap != 0) {
      const at::Tensor bounded = at::tanh(logits / options.soft_cap);
      slope = 1 - bounded.square();
      logits = bounded * options.soft_cap;
    }
    at::Tensor shares = logits.log_softmax(1);
    found.loss -= shares.gather(1, target).sum();
    shares.exp_();
    shares.scatter_add_(1, target, at::full({rows, 1}, -1, input.options()));
    if (slope.defined()) shares.mul_(slope);
    found.input_gradient.narrow(0, begin, rows).copy_(at::mm(shares, head));
    found.head_gradient.addmm_(shares.t(), part);
  }
  return found;
}

LossWithGradients loss_with_gradients(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                                      const TrainedLossOptions& options) {
  if (!input.is_cpu() || input.scalar_type() != at::kFloat) return loss_by_rows(input, head, targets, options);
  const auto [least, most] = targets.aminmax();
  ASSERT(least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < head.size(0), "a target that is no output");
  LossBlocks blocks(input, head, targets, options);
  const double loss = blocks.run();
  return {at::scalar_tensor(loss, input.options()), blocks.input_gradient(), blocks.head_gradient()};
}

struct LossNode : torch::autograd::Function<LossNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& head,
                            const at::Tensor& targets, double soft_cap, std::int64_t logit_bytes) {
    // Detached: the tasks make views, and threads that libtorch does not know track gradients by default.
    const LossWithGradients found = loss_with_gradients(input.detach().contiguous(), head.detach().contiguous(),
                                                        targets.contiguous(), {soft_cap, logit_bytes});
    const auto rows = static_cast<double>(input.size(0));
    context->save_for_backward({found.input_gradient, found.head_gradient});
    context->saved_data["rows"] = rows;
    return found.loss / rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_mean_loss");
    const auto saved = context->get_saved_variables();
    const at::Tensor factor = gradients[0] / context->saved_data["rows"].toDouble();
    return {saved[0] * factor, saved[1] * factor, {}, {}, {}};
  }
};

}  // namespace

at::Tensor trained_mean_loss(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                             const TrainedLossOptions& options) {
  ASSERT(input.dim() == 2 && targets.dim() == 1 && targets.size(0) == input.size(0), "one target for each row");
  ASSERT(targets.scalar_type() == at::kLong && input.size(0) > 0, "targets must be int64, at least one");
  if (input.is_cpu() && !is_tracked(input) && !is_tracked(head))
    return target_losses(input, PackedWeight(head), targets, options.soft_cap).mean().to(input.scalar_type());
  return LossNode::apply(input, head, targets, options.soft_cap, options.logit_bytes);
}

}  // namespace gainlens::kernels
