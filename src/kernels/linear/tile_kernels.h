#pragma once

#include "kernels/element_type.h"
#include "kernels/linear/activation.h"

#include <cstdint>

// Vector code of the products of activations with weights (Highway, which chooses the instruction set at run time).
//
// A tile is a block of results in float32: some rows of activations times one panel of a weight. The multiplication
// fills the tile; then one pass over the tile adds the bias, applies the activation and stores the result, while the
// tile is still in the cache.

namespace gainlens::kernels {

/// Rows in memory. `data` points to `ElementType`; `stride` counts elements.
struct StoredRows {
  void* data = nullptr;
  std::int64_t stride = 0;
};
struct ConstStoredRows {
  const void* data = nullptr;  ///< null: there are none
  std::int64_t stride = 0;
};

/// A running log-sum-exp: sum exp(x - maximum).
struct LogSumExp {
  float maximum = -3.4028235e38F;
  double total = 0;
  float poison = 0;  ///< NaN once a logit was NaN or infinite, else 0
};

struct TileKernels {
  std::int64_t columns;  ///< of a panel
  std::int64_t rows;     ///< of a strip; tiles have a multiple of it

  /// tile = left panel, or tile += left panel.
  /// @param left   [strips * strip rows, inner]
  /// @param panel  [inner, panel columns], aligned
  /// @param tile   [strips * strip rows, >= panel columns], rows aligned
  void (*multiply)(std::int64_t strips, std::int64_t inner, const float* left, std::int64_t left_stride,
                   const float* panel, bool add, float* tile, std::int64_t tile_stride);

  /// The same with the left side transposed: [inner, left stride], where strips * strip rows <= left stride.
  void (*multiply_transposed)(std::int64_t strips, std::int64_t inner, const float* left, std::int64_t left_stride,
                              const float* panel, bool add, float* tile, std::int64_t tile_stride);

  /// to[i, j] = factor from[j, i].
  /// @param from  [rows, columns]
  /// @param to    [columns, >= rows]
  void (*transpose)(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t from_stride, float factor,
                    float* to, std::int64_t to_stride);

  /// Writes f(tile + bias) + residual, rounded once to the type of the output.
  /// @param bias  [columns], null if there is none
  void (*finish)(std::int64_t rows, std::int64_t columns, const float* tile, std::int64_t tile_stride,
                 const float* bias, Activation activation, ElementType type, ConstStoredRows residual,
                 StoredRows output);

  /// The same of two tiles: the gates and the neurons.
  void (*finish_gated)(std::int64_t rows, std::int64_t columns, const float* gates, const float* neurons,
                       std::int64_t tile_stride, const float* gate_bias, const float* neuron_bias,
                       const GateFunction& function, ElementType type, StoredRows output);

  /// Gradient of f(g) u (not of the clipped form): dg = dy u f'(g), du = dy f(g). Without neurons (null): dg = dy
  /// f'(g).
  void (*gate_gradient)(Activation activation, std::int64_t count, const float* gates, const float* neurons,
                        const float* dy, float* dgates, float* dneurons);

  /// value = f(x) and slope = f'(x).
  void (*activation_with_slope)(Activation activation, std::int64_t count, const float* x, float* value, float* slope);
  /// dx = dvalue f'(x) + dslope f''(x).
  void (*slope_gradient)(Activation activation, std::int64_t count, const float* x, const float* dvalue,
                         const float* dslope, float* dx);

  /// Adds the first `columns` logits of each row to the row's sum. Logits z become cap tanh(z / cap) before, if cap is
  /// not 0; then the tile holds these. Elements of the tile after `columns` may be overwritten, up to a whole vector.
  /// @param sums  [rows]
  void (*absorb_logits)(std::int64_t rows, std::int64_t columns, float* tile, std::int64_t tile_stride, float cap,
                        LogSumExp* sums);

  /// Replaces the first `columns` logits z of each row by exp(z - log_total), times 1 - (z / cap)^2 if cap is not 0:
  /// their share in the gradient of the row's log-sum-exp. Elements after `columns` may be overwritten, up to a whole
  /// vector.
  /// @param tile        as absorb_logits left it
  /// @param log_totals  [rows]: the log-sum-exp of all logits of each row
  void (*logit_gradients)(std::int64_t rows, std::int64_t columns, float* tile, std::int64_t tile_stride, float cap,
                          const float* log_totals);
};

/// The table for the best instruction set of this machine.
const TileKernels& tile_kernels();

}  // namespace gainlens::kernels
