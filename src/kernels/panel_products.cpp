#include "kernels/panel_products.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panel_products.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Real>
using Tag = hn::CappedTag<Real, row_alignment / sizeof(Real)>;

template <typename Real>
constexpr std::int64_t Lanes() {
  return static_cast<std::int64_t>(hn::MaxLanes(Tag<Real>()));
}

/// Vectors in a panel's row. With the strip's rows they fill the registers: rows x vectors sums, the panel's row, a broadcast number.
constexpr std::int64_t panel_vectors = 2;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr std::int64_t strip_rows = 12;  // 32 registers
#else
constexpr std::int64_t strip_rows = 6;  // 16 registers
#endif

template <typename Real>
constexpr std::int64_t PanelColumns() {
  return panel_vectors * Lanes<Real>();
}

/// One strip times one panel over `inner` indices: left[i, k] right[k, j].
template <bool add, typename Real>
HWY_INLINE void MultiplyStrip(std::int64_t inner, const Real* HWY_RESTRICT left, std::int64_t left_stride, const Real* HWY_RESTRICT right,
                              Real* HWY_RESTRICT result, std::int64_t result_stride) {
  const Tag<Real> tag;
  hn::Vec<Tag<Real>> sums[strip_rows][panel_vectors];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < strip_rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j) {
      sums[i][j] = add ? hn::Load(tag, result + i * result_stride + j * Lanes<Real>()) : hn::Zero(tag);
    }
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    hn::Vec<Tag<Real>> columns[panel_vectors];
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j) columns[j] = hn::Load(tag, right + k * PanelColumns<Real>() + j * Lanes<Real>());
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < strip_rows; ++i) {
      const auto element = hn::Set(tag, left[i * left_stride + k]);
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < panel_vectors; ++j) sums[i][j] = hn::MulAdd(element, columns[j], sums[i][j]);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < strip_rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j) hn::Store(sums[i][j], tag, result + i * result_stride + j * Lanes<Real>());
  }
}

/// Asks for one share of `shares` of the next panel while the current one is multiplied: panels come from memory, or the third-level cache,
/// once a block, and the hardware does not look across the end of one. Into the second level: the first holds the current panel.
template <typename Real>
HWY_INLINE void FetchShare(const Real* next, std::int64_t elements, std::int64_t share, std::int64_t shares) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(Real));
  const std::int64_t step = (elements / line + shares - 1) / shares * line, begin = share * step;
  for (std::int64_t i = begin; i < std::min(begin + step, elements); i += line) __builtin_prefetch(next + i, 0, 2);
}

template <typename Real>
void ScoreTile(std::int64_t strip_count, const StripRange* strips, std::int64_t dims, Rows<const Real> queries, const Real* keys,
               Rows<Real> scores) {
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
      MultiplyStrip<false>(dims, queries.data + row * queries.stride, queries.stride, keys + first * dims,
                           scores.data + row * scores.stride + first, scores.stride);
    }
  }
}

template <typename Real>
void AddWeightedValues(std::int64_t strip_count, const StripRange* strips, std::int64_t panels, std::int64_t panel_keys,
                       Rows<const Real> weights, const Real* values, Rows<Real> sums) {
  constexpr std::int64_t columns = PanelColumns<Real>();
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const Real* right = values + panel * panel_keys * columns;
    for (std::int64_t strip = 0; strip < strip_count; ++strip) {
      const StripRange range = strips[strip];
      if (range.begin >= range.end) continue;
      if (panel + 1 < panels) FetchShare(right + panel_keys * columns, panel_keys * columns, strip, strip_count);
      const std::int64_t row = strip * strip_rows;
      MultiplyStrip<true>(range.end - range.begin, weights.data + row * weights.stride + range.begin, weights.stride,
                          right + range.begin * columns, sums.data + row * sums.stride + panel * columns, sums.stride);
    }
  }
}

/// Smallest, largest and, in `poison`, 0 times every element: NaN once one was NaN or infinite.
template <typename Real>
struct VectorExtrema {
  using Vector = hn::Vec<Tag<Real>>;
  Vector smallest, largest, poison;

  // No default member initialisers: a constructor the compiler writes would not be compiled for the target.
  static HWY_INLINE VectorExtrema none() {
    const Tag<Real> tag;
    return {hn::Set(tag, std::numeric_limits<Real>::infinity()), hn::Set(tag, -std::numeric_limits<Real>::infinity()), hn::Zero(tag)};
  }

  HWY_INLINE void add(Vector x) {
    smallest = hn::Min(smallest, x);
    largest = hn::Max(largest, x);
    poison = hn::MulAdd(x, hn::Zero(Tag<Real>()), poison);
  }
  HWY_INLINE void add_to(Extrema& extrema) const {
    const Tag<Real> tag;
    const bool finite = hn::GetLane(hn::SumOfLanes(tag, poison)) == 0;  // NaN is not
    extrema.add({.smallest = static_cast<double>(hn::GetLane(hn::MinOfLanes(tag, smallest))),
                 .largest = static_cast<double>(hn::GetLane(hn::MaxOfLanes(tag, largest))),
                 .finite = finite});
  }
};

/// A vector of a row whose last one may be short: then the rest repeats nothing but zeros, and extrema see the row's own elements only.
template <typename Real>
HWY_INLINE hn::Vec<Tag<Real>> LoadRow(const Real* row, std::int64_t index, std::int64_t count, VectorExtrema<Real>& extrema) {
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
void PackKeyPanel(Rows<const Real> keys, std::int64_t count, std::int64_t dims, Real* HWY_RESTRICT panel, Extrema& extrema) {
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
  for (std::int64_t i = 0; i < dims; i += Lanes<Real>()) hn::Store(hn::Mul(LoadRow(source, i, dims, seen), scale), tag, row + i);
  seen.add_to(extrema);
}

/// Keys whose sums are taken in Real before they are added in double.
constexpr std::int64_t sum_keys = 32;

template <typename Real>
void PackValueRows(Rows<const Real> values, std::int64_t count, std::int64_t dims, const Real* HWY_RESTRICT centre, std::int64_t panel_keys,
                   Real* HWY_RESTRICT packed, double* HWY_RESTRICT sums, Extrema& extrema) {
  const Tag<Real> tag;
  constexpr std::int64_t columns = PanelColumns<Real>();
  const std::int64_t width = (dims + columns - 1) / columns * columns;
  auto seen = VectorExtrema<Real>::none();
  for (std::int64_t i = 0; i < width; i += Lanes<Real>()) {
    const auto c = hn::Load(tag, centre + i);
    const std::int64_t place = i / columns * panel_keys * columns + i % columns;  // of key 0
    Real* offsets = packed + place;
    Real* squares = packed + place + width * panel_keys;
    for (std::int64_t first = 0; first < count; first += sum_keys) {
      auto sum = hn::Zero(tag), sum_squares = hn::Zero(tag);
      for (std::int64_t key = first; key < std::min(first + sum_keys, count); ++key) {
        auto offset = hn::Zero(tag);
        if (i < dims) offset = hn::Sub(LoadRow(values.data + key * values.stride, i, dims, seen), c);
        const auto square = hn::Mul(offset, offset);
        hn::Store(offset, tag, offsets + key * columns);
        hn::Store(square, tag, squares + key * columns);
        sum = hn::Add(sum, offset);
        sum_squares = hn::Add(sum_squares, square);
      }
      HWY_ALIGN Real lanes[2 * Lanes<Real>()];
      hn::Store(sum, tag, lanes);
      hn::Store(sum_squares, tag, lanes + Lanes<Real>());
      for (std::int64_t lane = 0; lane < Lanes<Real>(); ++lane) {
        sums[i + lane] += static_cast<double>(lanes[lane]);
        sums[width + i + lane] += static_cast<double>(lanes[Lanes<Real>() + lane]);
      }
    }
  }
  seen.add_to(extrema);
}

#undef GAINLENS_PANEL_KERNELS
#define GAINLENS_PANEL_KERNELS(X, Real)                                                                                                  \
  X(Real, ScoreTile, score_tile,                                                                                                         \
    (std::int64_t strip_count, const StripRange* strips, std::int64_t dims, Rows<const Real> queries, const Real* keys,                  \
     Rows<Real> scores),                                                                                                                 \
    (strip_count, strips, dims, queries, keys, scores))                                                                                  \
  X(Real, AddWeightedValues, add_weighted_values,                                                                                        \
    (std::int64_t strip_count, const StripRange* strips, std::int64_t panels, std::int64_t panel_keys, Rows<const Real> weights,         \
     const Real* values, Rows<Real> sums),                                                                                               \
    (strip_count, strips, panels, panel_keys, weights, values, sums))                                                                    \
  X(Real, PackKeyPanel, pack_key_panel, (Rows<const Real> keys, std::int64_t count, std::int64_t dims, Real * panel, Extrema & extrema), \
    (keys, count, dims, panel, extrema))                                                                                                 \
  X(Real, LoadQuery, load_query, (const Real* source, std::int64_t dims, Real factor, Real* row, Extrema& extrema),                      \
    (source, dims, factor, row, extrema))                                                                                                \
  X(Real, PackValueRows, pack_value_rows,                                                                                                \
    (Rows<const Real> values, std::int64_t count, std::int64_t dims, const Real* centre, std::int64_t panel_keys, Real* packed,          \
     double* sums, Extrema& extrema),                                                                                                    \
    (values, count, dims, centre, panel_keys, packed, sums, extrema))

GAINLENS_PANEL_KERNELS(GAINLENS_PLAIN_FUNCTION, float)
GAINLENS_PANEL_KERNELS(GAINLENS_PLAIN_FUNCTION, double)

PanelShape PanelShape_float() {
  return {.columns = PanelColumns<float>(), .rows = strip_rows};
}
PanelShape PanelShape_double() {
  return {.columns = PanelColumns<double>(), .rows = strip_rows};
}

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gainlens::kernels {

HWY_EXPORT(PanelShape_float);
HWY_EXPORT(PanelShape_double);
template <>
PanelShape panel_shape<float>() {
  return HWY_DYNAMIC_DISPATCH(PanelShape_float)();
}
template <>
PanelShape panel_shape<double>() {
  return HWY_DYNAMIC_DISPATCH(PanelShape_double)();
}

GAINLENS_PANEL_KERNELS(GAINLENS_DISPATCH, float)
GAINLENS_PANEL_KERNELS(GAINLENS_DISPATCH, double)

}  // namespace gainlens::kernels
#endif  // HWY_ONCE
