#include "kernels/streaming/panel_products.h"

#include "kernels/row_alignment.h"
#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/streaming/panel_products.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "kernels/strip_products-inl.h"
#include "kernels/vector_table-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Adds a vector to as many doubles, or stores it there.
template <bool add>
HWY_INLINE void AddToDoubles(hn::Vec<Tag<double>> vector, double* HWY_RESTRICT sums) {
  const Tag<double> tag;
  hn::Store(add ? hn::Add(hn::Load(tag, sums), vector) : vector, tag, sums);
}

template <bool add>
HWY_INLINE void AddToDoubles(hn::Vec<Tag<float>> vector, double* HWY_RESTRICT sums) {
#if HWY_TARGET == HWY_SCALAR  // HWY_SCALAR has no half vectors
  sums[0] = (add ? sums[0] : 0) + static_cast<double>(hn::GetLane(vector));
#else
  const hn::Half<Tag<float>> half;
  const hn::Rebind<double, hn::Half<Tag<float>>> wide;
  const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, vector)),
             high = hn::PromoteTo(wide, hn::UpperHalf(half, vector));
  double* const second = sums + Lanes<float>() / 2;
  hn::Store(add ? hn::Add(hn::Load(wide, sums), low) : low, wide, sums);
  hn::Store(add ? hn::Add(hn::Load(wide, second), high) : high, wide, second);
#endif
}

template <typename Real>
void ScoreTile(std::int64_t strip_count, const StripRange* strips, std::int64_t dims, Rows<const Real> queries,
               const Real* keys, Rows<Real> scores) {
  std::int64_t begin = strips[0].begin, end = strips[0].end;
  for (std::int64_t strip = 1; strip < strip_count; ++strip) {
    begin = std::min(begin, strips[strip].begin);
    end = std::max(end, strips[strip].end);
  }
  constexpr std::int64_t columns = PanelColumns<Real>();
  for (std::int64_t first = begin / columns * columns; first < end; first += columns) {
    for (std::int64_t strip = 0; strip < strip_count; ++strip) {
      if (strips[strip].begin >= first + columns || strips[strip].end <= first) continue;
      if (first + columns < end) FetchShare(keys + (first + columns) * dims, columns * dims, strip, strip_count);
      const std::int64_t row = strip * strip_rows;
      StripSums<Real> sums;
      MultiplyStrip<Real>(dims, queries.data + row * queries.stride, queries.stride, keys + first * dims, sums);
      StoreStrip<false, Real>(sums, scores.data + row * scores.stride + first, scores.stride);
    }
  }
}

/// Adds the product over the last chain of a range, still in registers, and the product over its earlier chains to
/// doubles. Or stores their sum there, if `add` is false.
template <bool several, bool add, typename Real>
HWY_INLINE void FinishRange(const StripSums<Real>& last, const Real* HWY_RESTRICT earlier, double* HWY_RESTRICT sums,
                            std::int64_t sums_stride) {
  const Tag<Real> tag;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < strip_rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j) {
      const Real* place = earlier + i * PanelColumns<Real>() + j * Lanes<Real>();
      const auto range_sums = several ? hn::Add(last[i][j], hn::Load(tag, place)) : last[i][j];
      AddToDoubles<add>(range_sums, sums + i * sums_stride + j * Lanes<Real>());
    }
  }
}

/// Adds the product of one strip and one panel over the keys of `range`, which must not be empty, to doubles.
template <typename Real>
HWY_INLINE void AddStrip(StripRange range, const Real* HWY_RESTRICT weights, std::int64_t weights_stride,
                         const Real* HWY_RESTRICT values, double* HWY_RESTRICT sums, std::int64_t sums_stride) {
  constexpr std::int64_t columns = PanelColumns<Real>();
  HWY_ALIGN Real earlier[strip_rows * columns];
  StripSums<Real> chain;
  // Chains end at fixed places of the tile: the bits of a query must not depend on the keys that other rows of its
  // strip see.
  const auto chain_end = [&](std::int64_t begin) { return std::min((begin / chain_keys + 1) * chain_keys, range.end); };
  std::int64_t begin = range.begin, end = chain_end(begin);
  MultiplyStrip<Real>(end - begin, weights + begin, weights_stride, values + begin * columns, chain);
  if (end == range.end) {
    range.first ? FinishRange<false, false, Real>(chain, earlier, sums, sums_stride)
                : FinishRange<false, true, Real>(chain, earlier, sums, sums_stride);
    return;
  }
  StoreStrip<false, Real>(chain, earlier, columns);
  for (;;) {
    begin = end;
    end = chain_end(begin);
    MultiplyStrip<Real>(end - begin, weights + begin, weights_stride, values + begin * columns, chain);
    if (end == range.end) break;
    StoreStrip<true, Real>(chain, earlier, columns);
  }
  range.first ? FinishRange<true, false, Real>(chain, earlier, sums, sums_stride)
              : FinishRange<true, true, Real>(chain, earlier, sums, sums_stride);
}

template <typename Real>
void AddWeightedValues(std::int64_t strip_count, const StripRange* strips, std::int64_t panels, std::int64_t panel_keys,
                       Rows<const Real> weights, const Real* values, Rows<double> sums) {
  constexpr std::int64_t columns = PanelColumns<Real>();
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const Real* right = values + panel * panel_keys * columns;
    for (std::int64_t strip = 0; strip < strip_count; ++strip) {
      if (strips[strip].begin >= strips[strip].end) continue;
      if (panel + 1 < panels) FetchShare(right + panel_keys * columns, panel_keys * columns, strip, strip_count);
      const std::int64_t row = strip * strip_rows;
      AddStrip(strips[strip], weights.data + row * weights.stride, weights.stride, right,
               sums.data + row * sums.stride + panel * columns, sums.stride);
    }
  }
}

/// Smallest and largest element. `poison` adds 0 times every element, so it becomes NaN once an element is NaN or
/// infinite.
template <typename Real>
struct VectorExtrema {
  using Vector = hn::Vec<Tag<Real>>;
  Vector smallest, largest, poison;

  // No default member initialisers: the compiler would not compile the implicit constructor for the target.
  static HWY_INLINE VectorExtrema none() {
    const Tag<Real> tag;
    return {hn::Set(tag, std::numeric_limits<Real>::infinity()), hn::Set(tag, -std::numeric_limits<Real>::infinity()),
            hn::Zero(tag)};
  }

  HWY_INLINE void add(Vector x) {
    smallest = hn::Min(smallest, x);
    largest = hn::Max(largest, x);
    poison = hn::MulAdd(x, hn::Zero(Tag<Real>()), poison);
  }
  HWY_INLINE void add_to(Extrema& extrema) const {
    const Tag<Real> tag;
    const bool finite = hn::GetLane(hn::SumOfLanes(tag, poison)) == 0;  // false for NaN
    extrema.add({.smallest = static_cast<double>(hn::GetLane(hn::MinOfLanes(tag, smallest))),
                 .largest = static_cast<double>(hn::GetLane(hn::MaxOfLanes(tag, largest))),
                 .finite = finite});
  }
};

/// Loads a vector of a row. The last vector of a row may be short: it is filled with zeros, and only the elements of
/// the row count for the extrema.
template <typename Real>
HWY_INLINE hn::Vec<Tag<Real>> LoadRow(const Real* row, std::int64_t index, std::int64_t count,
                                      VectorExtrema<Real>& extrema) {
  const Tag<Real> tag;
  if (index + Lanes<Real>() <= count) {
    const auto x = hn::LoadU(tag, row + index);
    extrema.add(x);
    return x;
  }
  HWY_ALIGN Real rest[Lanes<Real>()] = {};
  std::copy(row + index, row + count, rest);
  HWY_ALIGN Real repeated[Lanes<Real>()];
  std::fill_n(repeated, Lanes<Real>(), row[index]);
  std::copy(row + index, row + count, repeated);
  extrema.add(hn::Load(tag, repeated));
  return hn::Load(tag, rest);
}

template <typename Real>
void PackKeyPanel(Rows<const Real> keys, std::int64_t count, std::int64_t dims, Real* HWY_RESTRICT panel,
                  Extrema& extrema) {
  constexpr std::int64_t columns = PanelColumns<Real>();
  auto seen = VectorExtrema<Real>::none();
  for (std::int64_t key = 0; key < count; ++key) {
    const Real* row = keys.data + key * keys.stride;
    for (std::int64_t i = 0; i < dims; i += Lanes<Real>()) LoadRow(row, i, dims, seen);
    for (std::int64_t i = 0; i < dims; ++i) panel[i * columns + key] = row[i];
  }
  for (std::int64_t key = count; key < columns; ++key) {
    for (std::int64_t i = 0; i < dims; ++i) panel[i * columns + key] = Real{0};
  }
  seen.add_to(extrema);
}

template <typename Real>
void LoadQuery(const Real* source, std::int64_t dims, Real factor, Real* HWY_RESTRICT row, Extrema& extrema) {
  const Tag<Real> tag;
  const auto scale = hn::Set(tag, factor);
  auto seen = VectorExtrema<Real>::none();
  for (std::int64_t i = 0; i < dims; i += Lanes<Real>())
    hn::Store(hn::Mul(LoadRow(source, i, dims, seen), scale), tag, row + i);
  seen.add_to(extrema);
}

/// Sums of numbers and of their squares in double, lane by lane. The square of a float is exact in double.
template <typename Real>
struct WideSums;

template <>
struct WideSums<double> {
  hn::Vec<Tag<double>> sum, squares;

  static HWY_INLINE WideSums none() { return {hn::Zero(Tag<double>()), hn::Zero(Tag<double>())}; }
  HWY_INLINE void add(hn::Vec<Tag<double>> x) {
    sum = hn::Add(sum, x);
    squares = hn::MulAdd(x, x, squares);
  }
  HWY_INLINE void store(double* HWY_RESTRICT to_sum, double* HWY_RESTRICT to_squares) const {
    hn::StoreU(sum, Tag<double>(), to_sum);
    hn::StoreU(squares, Tag<double>(), to_squares);
  }
};

template <>
struct WideSums<float> {
#if HWY_TARGET == HWY_SCALAR  // HWY_SCALAR has no half vectors
  double sum, squares;

  static HWY_INLINE WideSums none() {
    return {0, 0};
  }
  HWY_INLINE void add(hn::Vec<Tag<float>> x) {
    const auto wide = static_cast<double>(hn::GetLane(x));
    sum += wide;
    squares += wide * wide;
  }
  HWY_INLINE void store(double* HWY_RESTRICT to_sum, double* HWY_RESTRICT to_squares) const {
    *to_sum = sum;
    *to_squares = squares;
  }
#else
  using Half = hn::Half<Tag<float>>;
  using Wide = hn::Rebind<double, Half>;
  hn::Vec<Wide> low, high, low_squares, high_squares;

  static HWY_INLINE WideSums none() {
    const auto zero = hn::Zero(Wide());
    return {zero, zero, zero, zero};
  }
  HWY_INLINE void add(hn::Vec<Tag<float>> x) {
    const auto first = hn::PromoteTo(Wide(), hn::LowerHalf(Half(), x)),
               second = hn::PromoteTo(Wide(), hn::UpperHalf(Half(), x));
    low = hn::Add(low, first);
    high = hn::Add(high, second);
    low_squares = hn::MulAdd(first, first, low_squares);
    high_squares = hn::MulAdd(second, second, high_squares);
  }
  HWY_INLINE void store(double* HWY_RESTRICT to_sum, double* HWY_RESTRICT to_squares) const {
    hn::StoreU(low, Wide(), to_sum);
    hn::StoreU(high, Wide(), to_sum + Lanes<float>() / 2);
    hn::StoreU(low_squares, Wide(), to_squares);
    hn::StoreU(high_squares, Wide(), to_squares + Lanes<float>() / 2);
  }
#endif
};

template <typename Real>
void PackValueRows(Rows<const Real> values, std::int64_t count, std::int64_t dims, const Real* HWY_RESTRICT centre,
                   const Real* HWY_RESTRICT scale, std::int64_t panel_keys, Real* HWY_RESTRICT packed,
                   const PackedSums<Real>& sums, Extrema& extrema) {
  const Tag<Real> tag;
  constexpr std::int64_t columns = PanelColumns<Real>();
  const std::int64_t width = rounded_up(dims, columns);
  auto seen = VectorExtrema<Real>::none();
  for (std::int64_t i = 0; i < width; i += Lanes<Real>()) {
    const auto c = hn::Load(tag, centre + i), factor = hn::Load(tag, scale + i);
    const std::int64_t place = i / columns * panel_keys * columns + i % columns;  // of key 0
    Real* offsets = packed + place;
    Real* squares = packed + place + width * panel_keys;
    auto wide = WideSums<Real>::none();
    auto largest = hn::Zero(tag);
    for (std::int64_t key = 0; key < count; ++key) {
      auto offset = hn::Zero(tag);
      if (i < dims) offset = hn::Mul(hn::Sub(LoadRow(values.data + key * values.stride, i, dims, seen), c), factor);
      hn::Store(offset, tag, offsets + key * columns);
      hn::Store(hn::Mul(offset, offset), tag, squares + key * columns);
      wide.add(offset);
      largest = hn::Max(largest, hn::Abs(offset));
    }
    wide.store(sums.offsets + i, sums.squares + i);
    hn::StoreU(largest, tag, sums.largest + i);
  }
  seen.add_to(extrema);
}

template <typename Real>
constexpr PanelKernels<Real> panel_kernels_table = {
    .columns = PanelColumns<Real>(),
    .rows = strip_rows,
    .score_tile = ScoreTile<Real>,
    .add_weighted_values = AddWeightedValues<Real>,
    .pack_key_panel = PackKeyPanel<Real>,
    .load_query = LoadQuery<Real>,
    .pack_value_rows = PackValueRows<Real>,
};

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE_FOR(PanelKernels, panel_kernels, float)
GAINLENS_VECTOR_TABLE_FOR(PanelKernels, panel_kernels, double)
