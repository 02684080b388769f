#include "kernels/composed/estimator_sums.h"

#include <ATen/ATen.h>

namespace gainlens::kernels {
namespace {

/// The rows of `values` [kv_head, position, x] at the positions [head, query, 1]: [head, query, x].
at::Tensor rows_at(const at::Tensor& values, const at::Tensor& positions) {
  const std::int64_t group = positions.size(0) / values.size(0);
  const at::Tensor kv_head = at::arange(positions.size(0), positions.options()).floor_divide_(group).unsqueeze(1);
  return values.index({kv_head, positions.squeeze(2)});
}

/// Error of a weighted mean of u^2 minus the square of the mean of u, relative to the mean of u^2.
constexpr double cancelled = 1e-15;

}  // namespace

at::Tensor EstimatorSums::weighted_squares(const at::Tensor& shift) const {
  const at::Tensor sum = total.masked_fill(total.eq(0), 1).unsqueeze(2);
  const at::Tensor rest = squares.weight * (squares.residual + (squares.offset - shift).square());
  return ((heaviest - shift).square() + rest) * total.ne(0).unsqueeze(2) / sum.square();
}

EstimatorSums estimator_sums(Estimator estimator, const ScoreBlock& block, const at::Tensor& weights,
                             const at::Tensor& seen, const CentredValues& values) {
  const at::Tensor place = weights.argmax(-1, /*keepdim=*/true);
  const at::Tensor heavy_weight = weights.gather(2, place).to(at::kDouble);  // 1, or 0 if there is no other key
  // One tensor for the weights of the rest and then their squares: as large as a block of scores, it is the largest.
  at::Tensor coefficients = weights.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).scatter_(2, place, 0);
  const OtherKeys rest = moments_of_others(block, coefficients, values);
  const at::Tensor heavy = rows_at(values.offsets(), place + block.keys.begin) * heavy_weight;

  EstimatorSums sums;
  const at::Tensor total = heavy_weight + rest.weight, safe_total = total.masked_fill(total.eq(0), 1);
  sums.total = total.squeeze(2);
  const at::Tensor share = rest.weight / safe_total;
  sums.heaviest = share * (heavy - rest.offset);
  sums.offset = heavy - sums.heaviest;
  const at::Tensor rest_residual = rest.residual + (rest.offset - sums.offset).square();
  sums.residual = (heavy_weight * sums.heaviest.square() + rest.weight * rest_residual) / safe_total;
  sums.rounding_of_residual = cancelled * share * (heavy.square() + rest.residual + rest.offset.square());

  coefficients.square_();
  const at::Tensor rest_squares = coefficients.sum(-1, /*keepdim=*/true);
  sums.total_squares = (heavy_weight + rest_squares).squeeze(2);
  sums.degrees = (2 * heavy_weight * rest.weight + rest.weight.square() - rest_squares).clamp_min(0).squeeze(2) /
                 sums.total_squares;
  if (estimator == Estimator::sandwich || estimator == Estimator::delta_weight_free) {
    sums.squares = moments_of_others(block, coefficients, values);
    const at::Tensor squares_residual = heavy.square() + sums.squares.residual + sums.squares.offset.square();
    sums.rounding_of_squares = cancelled * (sums.squares.weight / safe_total.square() * squares_residual +
                                            share.square() * (heavy.square() + rest.offset.square()));
    sums.squares.offset.sub_(sums.offset);
  }
  if (estimator == Estimator::kish) {
    coefficients.reset();
    sums.visible = moments_of_others(block, seen, values);
    sums.visible.offset.sub_(sums.offset);
  }
  return sums;
}

}  // namespace gainlens::kernels
