#pragma once

#include "kernels/element_type.h"

#include <cstdint>

namespace gainlens::kernels {

/// The functions of single rows, compiled for one instruction set. Rows of float32 need not be aligned.
struct RowVectors {
  /// to = the element type's numbers, widened.
  void (*widen)(ElementType type, const void* from, std::int64_t count, float* to);
  /// to = the numbers, rounded to nearest.
  void (*narrow)(ElementType type, const float* from, std::int64_t count, void* to);
  /// x = (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean square + epsilon).
  void (*normalise)(bool centre, double epsilon, std::int64_t count, float* x);
  /// Gradient of y = (offset + weight) n, where n are the normalised numbers of x: x becomes dx, and the gradients of
  /// weight and bias are added to. The norm is computed anew.
  /// @param dy            the gradient of y
  /// @param n             room for `count` numbers
  /// @param dweight, dbias  null: not wanted
  void (*norm_gradient)(bool centre, double epsilon, const float* weight, float offset, const float* dy,
                        std::int64_t count, float* x, float* n, float* dweight, float* dbias);
  /// x = (offset + weight) x + bias; no bias: null.
  void (*scale)(const float* weight, float offset, const float* bias, std::int64_t count, float* x);
  /// Turns the pairs (x[i], x[pairs + i]) of each row: x[i] cos - x[pairs + i] sin, x[pairs + i] cos + x[i] sin.
  /// @param cosine, sine  [pairs], the same for all rows
  /// @param stride        from row to row
  void (*rotate)(const float* cosine, const float* sine, std::int64_t pairs, std::int64_t rows, std::int64_t stride,
                 float* x);
  /// The sum of 0 x: 0 if all numbers are finite, else NaN.
  float (*poison)(ElementType type, const void* x, std::int64_t count);
};

/// The table for the best instruction set of this machine.
const RowVectors& row_vectors();

}  // namespace gainlens::kernels
