#include "kernels/linear/tile_kernels.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear/tile_kernels.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/strip_products-inl.h"
#include "kernels/stored_vectors-inl.h"
#include "kernels/vector_table-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace {  // other files of vector code may use the same names
namespace hn = hwy::HWY_NAMESPACE;

using Floats = Tag<float>;
using Vector = hn::Vec<Floats>;

/// tile = left panel, or tile += left panel. The left side is [row, inner] or, transposed, [inner, row].
template <bool transposed>
HWY_INLINE void MultiplyTile(std::int64_t strips, std::int64_t inner, const float* HWY_RESTRICT left,
                             std::int64_t left_stride, const float* HWY_RESTRICT panel, bool add,
                             float* HWY_RESTRICT tile, std::int64_t tile_stride) {
  for (std::int64_t strip = 0; strip < strips; ++strip) {
    const std::int64_t row = strip * strip_rows;
    StripSums<float> sums;
    if constexpr (transposed) {
      MultiplySteppedStrip<float>(inner, left + row, 1, left_stride, panel, sums);
    } else {
      MultiplyStrip<float>(inner, left + row * left_stride, left_stride, panel, sums);
    }
    add ? StoreStrip<true, float>(sums, tile + row * tile_stride, tile_stride)
        : StoreStrip<false, float>(sums, tile + row * tile_stride, tile_stride);
  }
}

void Multiply(std::int64_t strips, std::int64_t inner, const float* HWY_RESTRICT left, std::int64_t left_stride,
              const float* HWY_RESTRICT panel, bool add, float* HWY_RESTRICT tile, std::int64_t tile_stride) {
  MultiplyTile<false>(strips, inner, left, left_stride, panel, add, tile, tile_stride);
}

void MultiplyTransposed(std::int64_t strips, std::int64_t inner, const float* HWY_RESTRICT left,
                        std::int64_t left_stride, const float* HWY_RESTRICT panel, bool add, float* HWY_RESTRICT tile,
                        std::int64_t tile_stride) {
  MultiplyTile<true>(strips, inner, left, left_stride, panel, add, tile, tile_stride);
}

void Transpose(std::int64_t rows, std::int64_t columns, const float* HWY_RESTRICT from, std::int64_t from_stride,
               float factor, float* HWY_RESTRICT to, std::int64_t to_stride) {
  std::int64_t whole_rows = 0, whole_columns = 0;  // in squares of 4 x 4
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> tag;
  const auto scale = hn::Set(tag, factor);
  whole_rows = rows / 4 * 4;
  whole_columns = columns / 4 * 4;
  for (std::int64_t i = 0; i < whole_columns; i += 4) {
    for (std::int64_t j = 0; j < whole_rows; j += 4) {
      const float* const square = from + j * from_stride + i;
      const auto a = hn::LoadU(tag, square), b = hn::LoadU(tag, square + from_stride),
                 c = hn::LoadU(tag, square + 2 * from_stride), d = hn::LoadU(tag, square + 3 * from_stride);
      const auto low_even = hn::InterleaveLower(tag, a, c), low_odd = hn::InterleaveLower(tag, b, d);
      const auto high_even = hn::InterleaveUpper(tag, a, c), high_odd = hn::InterleaveUpper(tag, b, d);
      float* const place = to + i * to_stride + j;
      hn::StoreU(hn::Mul(scale, hn::InterleaveLower(tag, low_even, low_odd)), tag, place);
      hn::StoreU(hn::Mul(scale, hn::InterleaveUpper(tag, low_even, low_odd)), tag, place + to_stride);
      hn::StoreU(hn::Mul(scale, hn::InterleaveLower(tag, high_even, high_odd)), tag, place + 2 * to_stride);
      hn::StoreU(hn::Mul(scale, hn::InterleaveUpper(tag, high_even, high_odd)), tag, place + 3 * to_stride);
    }
  }
#endif
  for (std::int64_t i = 0; i < columns; ++i) {
    for (std::int64_t j = i < whole_columns ? whole_rows : 0; j < rows; ++j)
      to[i * to_stride + j] = factor * from[j * from_stride + i];
  }
}

/// 1 / (1 + exp(-x)), and 0 below -88: the exponential of Highway is not defined where it overflows.
HWY_INLINE Vector Sigmoid(Vector x) {
  const Floats tag;
  const auto one = hn::Set(tag, 1.0F), lowest = hn::Set(tag, -88.0F);
  const auto power = hn::Exp(tag, hn::Neg(hn::Max(x, lowest)));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::Div(one, hn::Add(one, power)));
}

/// erf, within two units in the last place. Below 1 it is x times a polynomial of x^2, above it 1 - exp of a polynomial
/// of x, up to 4, where erf is 1 in float32. Both were fitted to mpmath's erf and log erfc at Chebyshev nodes.
HWY_INLINE Vector Erf(Vector x) {
  const Floats tag;
  const auto size = hn::Min(hn::Abs(x), hn::Set(tag, 4.0F));
  const auto square = hn::Mul(size, size);
  auto small = hn::Set(tag, 0x1.49234ep-14F);
  small = hn::MulAdd(small, square, hn::Set(tag, -0x1.a3dc18p-11F));
  small = hn::MulAdd(small, square, hn::Set(tag, 0x1.5401dcp-8F));
  small = hn::MulAdd(small, square, hn::Set(tag, -0x1.b7f88cp-6F));
  small = hn::MulAdd(small, square, hn::Set(tag, 0x1.ce2cf0p-4F));
  small = hn::MulAdd(small, square, hn::Set(tag, -0x1.81273ep-2F));
  small = hn::MulAdd(small, square, hn::Set(tag, 0x1.20dd74p+0F));
  auto logarithm = hn::Set(tag, -0x1.49662ep-16F);
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, 0x1.b4a18ep-12F));
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, -0x1.0b46dep-8F));
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, 0x1.9757b6p-6F));
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, -0x1.b9cebep-4F));
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, -0x1.4479eap-1F));
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, -0x1.211a86p+0F));
  logarithm = hn::MulAdd(logarithm, size, hn::Set(tag, 0x1.11ca08p-13F));
  const auto large = hn::Sub(hn::Set(tag, 1.0F), hn::Exp(tag, logarithm));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, hn::Set(tag, 1.0F)), hn::Mul(size, small), large), x);
}

template <Activation activation>
HWY_INLINE Vector Activated(Vector x) {
  const Floats tag;
  if constexpr (activation == Activation::silu) return hn::Mul(x, Sigmoid(x));
  if constexpr (activation == Activation::gelu_tanh) {
    // (1 + tanh(y)) / 2 is the sigmoid of 2 y.
    const auto cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(tag, 0.07135481627F), hn::Set(tag, 1.5957691216F));
    return hn::Mul(x, Sigmoid(hn::Mul(x, cubic)));
  }
  if constexpr (activation == Activation::gelu_erf) {
    const auto half = hn::Mul(x, hn::Set(tag, 0.5F));
    return hn::MulAdd(half, Erf(hn::Mul(x, hn::Set(tag, 0.70710678F))), half);
  }
  if constexpr (activation == Activation::relu || activation == Activation::squared_relu) {
    const auto positive = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(tag)), x);  // NaN stays NaN
    return activation == Activation::relu ? positive : hn::Mul(positive, positive);
  }
  return x;
}

template <Activation activation>
void FinishWith(std::int64_t rows, std::int64_t columns, const float* HWY_RESTRICT tile, std::int64_t tile_stride,
                const float* bias, ElementType type, ConstStoredRows residual, StoredRows output) {
  const Floats tag;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; i += Lanes<float>()) {
      const std::int64_t count = std::min(columns - i, Lanes<float>());
      auto x = hn::Load(tag, tile + row * tile_stride + i);
      if (bias != nullptr) x = hn::Add(x, LoadStored(ElementType::float32, bias, i, count));
      x = Activated<activation>(x);
      if (residual.data != nullptr) x = hn::Add(x, LoadStored(type, residual.data, row * residual.stride + i, count));
      StoreStored(type, x, output.data, row * output.stride + i, count);
    }
  }
}

/// Calls `function`<activation>(arguments...).
#define GAINLENS_WITH_ACTIVATION(function, activation, ...)   \
  switch (activation) {                                       \
    case Activation::none:                                    \
      return function<Activation::none>(__VA_ARGS__);         \
    case Activation::silu:                                    \
      return function<Activation::silu>(__VA_ARGS__);         \
    case Activation::gelu_tanh:                               \
      return function<Activation::gelu_tanh>(__VA_ARGS__);    \
    case Activation::gelu_erf:                                \
      return function<Activation::gelu_erf>(__VA_ARGS__);     \
    case Activation::relu:                                    \
      return function<Activation::relu>(__VA_ARGS__);         \
    case Activation::squared_relu:                            \
      return function<Activation::squared_relu>(__VA_ARGS__); \
  }

void Finish(std::int64_t rows, std::int64_t columns, const float* tile, std::int64_t tile_stride, const float* bias,
            Activation activation, ElementType type, ConstStoredRows residual, StoredRows output) {
  GAINLENS_WITH_ACTIVATION(FinishWith, activation, rows, columns, tile, tile_stride, bias, type, residual, output)
}

/// The two tiles of a gated layer, and what is added to them.
struct GatedTiles {
  const float* gates;
  const float* neurons;
  std::int64_t stride;
  const float* gate_bias;
  const float* neuron_bias;
};

/// The sums of both tiles with their biases, at `count` columns from column i on.
struct GateAndNeuron {
  Vector gate, neuron;
};

HWY_INLINE GateAndNeuron LoadGated(const GatedTiles& tiles, std::int64_t row, std::int64_t i, std::int64_t count) {
  const Floats tag;
  auto gate = hn::Load(tag, tiles.gates + row * tiles.stride + i);
  auto neuron = hn::Load(tag, tiles.neurons + row * tiles.stride + i);
  if (tiles.gate_bias != nullptr) gate = hn::Add(gate, LoadStored(ElementType::float32, tiles.gate_bias, i, count));
  if (tiles.neuron_bias != nullptr)
    neuron = hn::Add(neuron, LoadStored(ElementType::float32, tiles.neuron_bias, i, count));
  return {gate, neuron};
}

template <Activation activation>
void FinishGatedWith(std::int64_t rows, std::int64_t columns, const GatedTiles& tiles, ElementType type,
                     StoredRows output) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; i += Lanes<float>()) {
      const std::int64_t count = std::min(columns - i, Lanes<float>());
      const auto [gate, neuron] = LoadGated(tiles, row, i, count);
      StoreStored(type, hn::Mul(Activated<activation>(gate), neuron), output.data, row * output.stride + i, count);
    }
  }
}

void FinishClipped(std::int64_t rows, std::int64_t columns, const GatedTiles& tiles, const GateFunction& function,
                   ElementType type, StoredRows output) {
  const Floats tag;
  const auto limit = hn::Set(tag, static_cast<float>(function.limit)),
             alpha = hn::Set(tag, static_cast<float>(function.alpha)), one = hn::Set(tag, 1.0F);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; i += Lanes<float>()) {
      const std::int64_t count = std::min(columns - i, Lanes<float>());
      const auto [gate, neuron] = LoadGated(tiles, row, i, count);
      // Selections instead of Min and Max: NaN stays NaN.
      const auto clipped = hn::IfThenElse(hn::Gt(gate, limit), limit, gate);
      auto bounded = hn::IfThenElse(hn::Gt(neuron, limit), limit, neuron);
      bounded = hn::IfThenElse(hn::Lt(bounded, hn::Neg(limit)), hn::Neg(limit), bounded);
      const auto result = hn::Mul(hn::Add(bounded, one), hn::Mul(clipped, Sigmoid(hn::Mul(clipped, alpha))));
      StoreStored(type, result, output.data, row * output.stride + i, count);
    }
  }
}

void FinishGated(std::int64_t rows, std::int64_t columns, const float* gates, const float* neurons,
                 std::int64_t tile_stride, const float* gate_bias, const float* neuron_bias,
                 const GateFunction& function, ElementType type, StoredRows output) {
  const GatedTiles tiles{gates, neurons, tile_stride, gate_bias, neuron_bias};
  if (function.clipped) return FinishClipped(rows, columns, tiles, function, type, output);
  GAINLENS_WITH_ACTIVATION(FinishGatedWith, function.activation, rows, columns, tiles, type, output)
}

/// f(x) and f'(x).
struct WithSlope {
  Vector value, slope;
};

template <Activation activation>
HWY_INLINE WithSlope Differentiated(Vector x) {
  const Floats tag;
  const auto one = hn::Set(tag, 1.0F);
  if constexpr (activation == Activation::silu) {
    const auto s = Sigmoid(x);
    return {hn::Mul(x, s), hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one))};
  }
  if constexpr (activation == Activation::gelu_tanh) {  // x s(z), z = x (a + b x^2)
    const auto square = hn::Mul(x, x), a = hn::Set(tag, 1.5957691216F), b = hn::Set(tag, 0.07135481627F);
    const auto s = Sigmoid(hn::Mul(x, hn::MulAdd(square, b, a)));
    const auto slope = hn::MulAdd(hn::Mul(square, hn::Set(tag, 3.0F)), b, a);  // of z
    return {hn::Mul(x, s), hn::Mul(s, hn::MulAdd(hn::Mul(x, hn::Sub(one, s)), slope, one))};
  }
  if constexpr (activation == Activation::gelu_erf) {  // x P(x), P' the normal density
    const auto half = hn::Set(tag, 0.5F);
    const auto share = hn::MulAdd(half, Erf(hn::Mul(x, hn::Set(tag, 0.70710678F))), half);
    const auto power = hn::Max(hn::Mul(hn::Mul(x, x), hn::Set(tag, -0.5F)), hn::Set(tag, -88.0F));
    const auto density = hn::Mul(hn::Set(tag, 0.39894228F), hn::Exp(tag, power));
    return {hn::Mul(x, share), hn::MulAdd(x, density, share)};
  }
  if constexpr (activation == Activation::relu || activation == Activation::squared_relu) {
    const auto positive = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(tag)), x);
    if (activation == Activation::squared_relu) return {hn::Mul(positive, positive), hn::Add(positive, positive)};
    return {positive, hn::IfThenElseZero(hn::Gt(x, hn::Zero(tag)), one)};
  }
  return {x, one};
}

template <Activation activation>
void GateGradientWith(std::int64_t count, const float* gates, const float* neurons, const float* dy,
                      float* HWY_RESTRICT dgates, float* HWY_RESTRICT dneurons) {
  for (std::int64_t i = 0; i < count; i += Lanes<float>()) {
    const std::int64_t lanes = std::min(count - i, Lanes<float>());
    const auto load = [&](const float* row) HWY_ATTR { return LoadStored(ElementType::float32, row, i, lanes); };
    const auto gradient = load(dy);
    const auto [value, slope] = Differentiated<activation>(load(gates));
    auto gate_gradient = hn::Mul(gradient, slope);
    if (neurons != nullptr) {
      gate_gradient = hn::Mul(gate_gradient, load(neurons));
      StoreStored(ElementType::float32, hn::Mul(gradient, value), dneurons, i, lanes);
    }
    StoreStored(ElementType::float32, gate_gradient, dgates, i, lanes);
  }
}

void GateGradient(Activation activation, std::int64_t count, const float* gates, const float* neurons, const float* dy,
                  float* dgates, float* dneurons) {
  GAINLENS_WITH_ACTIVATION(GateGradientWith, activation, count, gates, neurons, dy, dgates, dneurons)
}

template <Activation activation>
void ActivationWithSlopeOf(std::int64_t count, const float* x, float* HWY_RESTRICT value, float* HWY_RESTRICT slope) {
  for (std::int64_t i = 0; i < count; i += Lanes<float>()) {
    const std::int64_t lanes = std::min(count - i, Lanes<float>());
    const auto found = Differentiated<activation>(LoadStored(ElementType::float32, x, i, lanes));
    StoreStored(ElementType::float32, found.value, value, i, lanes);
    StoreStored(ElementType::float32, found.slope, slope, i, lanes);
  }
}

void ActivationWithSlope(Activation activation, std::int64_t count, const float* x, float* value, float* slope) {
  GAINLENS_WITH_ACTIVATION(ActivationWithSlopeOf, activation, count, x, value, slope)
}

/// f''(x), 0 at the kinks.
template <Activation activation>
HWY_INLINE Vector SecondDerivative(Vector x) {
  const Floats tag;
  const auto two = hn::Set(tag, 2.0F);
  if constexpr (activation == Activation::silu) {
    const auto s = Sigmoid(x), rest = Sigmoid(hn::Neg(x));  // 1 - s would cancel
    return hn::Mul(hn::Mul(s, rest), hn::MulAdd(x, hn::Sub(rest, s), two));
  }
  if constexpr (activation == Activation::gelu_tanh) {  // x s(z), z = x (a + b x^2)
    const auto square = hn::Mul(x, x), a = hn::Set(tag, 1.5957691216F), b = hn::Set(tag, 0.07135481627F);
    const auto z = hn::Mul(x, hn::MulAdd(square, b, a));
    const auto s = Sigmoid(z), rest = Sigmoid(hn::Neg(z));
    const auto slope = hn::MulAdd(hn::Mul(square, hn::Set(tag, 3.0F)), b, a);  // of z
    const auto bend = hn::Mul(hn::Mul(hn::Set(tag, 6.0F), b), x);
    const auto inner = hn::MulAdd(hn::Mul(slope, slope), hn::Sub(rest, s), bend);
    return hn::Mul(hn::Mul(s, rest), hn::MulAdd(x, inner, hn::Mul(two, slope)));
  }
  if constexpr (activation == Activation::gelu_erf) {  // density (2 - x^2)
    const auto square = hn::Mul(x, x);
    const auto power = hn::Max(hn::Mul(square, hn::Set(tag, -0.5F)), hn::Set(tag, -88.0F));
    const auto density = hn::Mul(hn::Set(tag, 0.39894228F), hn::Exp(tag, power));
    return hn::Mul(density, hn::Sub(two, square));
  }
  if constexpr (activation == Activation::squared_relu) return hn::IfThenElseZero(hn::Gt(x, hn::Zero(tag)), two);
  return hn::Zero(tag);
}

template <Activation activation>
void SlopeGradientOf(std::int64_t count, const float* x, const float* dvalue, const float* dslope,
                     float* HWY_RESTRICT dx) {
  for (std::int64_t i = 0; i < count; i += Lanes<float>()) {
    const std::int64_t lanes = std::min(count - i, Lanes<float>());
    const auto load = [&](const float* row) HWY_ATTR { return LoadStored(ElementType::float32, row, i, lanes); };
    const auto at = load(x);
    const auto through_value = hn::Mul(load(dvalue), Differentiated<activation>(at).slope);
    StoreStored(ElementType::float32, hn::MulAdd(load(dslope), SecondDerivative<activation>(at), through_value), dx, i,
                lanes);
  }
}

void SlopeGradient(Activation activation, std::int64_t count, const float* x, const float* dvalue, const float* dslope,
                   float* dx) {
  GAINLENS_WITH_ACTIVATION(SlopeGradientOf, activation, count, x, dvalue, dslope, dx)
}

#undef GAINLENS_WITH_ACTIVATION

void AbsorbLogits(std::int64_t rows, std::int64_t columns, float* HWY_RESTRICT tile, std::int64_t tile_stride,
                  float cap, LogSumExp* HWY_RESTRICT sums) {
  const Floats tag;
  const std::int64_t whole = columns / Lanes<float>() * Lanes<float>();
  for (std::int64_t row = 0; row < rows; ++row) {
    float* logits = tile + row * tile_stride;
    LogSumExp& sum = sums[row];
    auto poison = hn::Zero(tag);
    if (cap != 0) {
      // A product that overflowed would be the cap.
      for (std::int64_t i = 0; i < whole; i += Lanes<float>())
        poison = hn::MulAdd(hn::Load(tag, logits + i), hn::Zero(tag), poison);
      for (std::int64_t i = whole; i < columns; ++i) sum.poison += logits[i] * 0;
      const auto factor = hn::Set(tag, cap), inverse = hn::Set(tag, 1 / cap);
      for (std::int64_t i = 0; i < columns; i += Lanes<float>())
        hn::Store(hn::Mul(factor, hn::Tanh(tag, hn::Mul(hn::Load(tag, logits + i), inverse))), tag, logits + i);
    }
    auto largest = hn::Set(tag, sum.maximum);
    for (std::int64_t i = 0; i < whole; i += Lanes<float>()) {
      const auto x = hn::Load(tag, logits + i);
      largest = hn::Max(largest, x);
      poison = hn::MulAdd(x, hn::Zero(tag), poison);
    }
    float maximum = hn::GetLane(hn::MaxOfLanes(tag, largest));
    sum.poison += hn::GetLane(hn::SumOfLanes(tag, poison));
    for (std::int64_t i = whole; i < columns; ++i) {
      maximum = std::max(maximum, logits[i]);
      sum.poison += logits[i] * 0;
    }
    // Bounded, since an infinite maximum would make NaN of every difference; the poison tells of it.
    maximum = std::min(maximum, 3.4028235e38F);
    const auto shift = hn::Set(tag, maximum);
    auto total = hn::Zero(tag);
    for (std::int64_t i = 0; i < whole; i += Lanes<float>())
      total = hn::Add(total, hn::Exp(tag, hn::Sub(hn::Load(tag, logits + i), shift)));
    double added = static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, total)));
    for (std::int64_t i = whole; i < columns; ++i)
      added += std::exp(static_cast<double>(logits[i]) - static_cast<double>(maximum));
    sum.total = sum.total * std::exp(static_cast<double>(sum.maximum) - static_cast<double>(maximum)) + added;
    sum.maximum = maximum;
  }
}

void LogitGradients(std::int64_t rows, std::int64_t columns, float* HWY_RESTRICT tile, std::int64_t tile_stride,
                    float cap, const float* HWY_RESTRICT log_totals) {
  const Floats tag;
  const auto one = hn::Set(tag, 1.0F), inverse = hn::Set(tag, cap == 0 ? 0 : 1 / cap);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const logits = tile + row * tile_stride;
    const auto shift = hn::Set(tag, log_totals[row]);
    for (std::int64_t i = 0; i < columns; i += Lanes<float>()) {
      const auto logit = hn::Load(tag, logits + i), share = hn::Exp(tag, hn::Sub(logit, shift));
      const auto bounded = hn::Mul(logit, inverse);
      hn::Store(hn::Mul(share, hn::NegMulAdd(bounded, bounded, one)), tag, logits + i);
    }
  }
}

constexpr TileKernels tile_kernels_table = {
    .columns = PanelColumns<float>(),
    .rows = strip_rows,
    .multiply = Multiply,
    .multiply_transposed = MultiplyTransposed,
    .transpose = Transpose,
    .finish = Finish,
    .finish_gated = FinishGated,
    .gate_gradient = GateGradient,
    .activation_with_slope = ActivationWithSlope,
    .slope_gradient = SlopeGradient,
    .absorb_logits = AbsorbLogits,
    .logit_gradients = LogitGradients,
};

}  // namespace

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE(TileKernels, tile_kernels)
