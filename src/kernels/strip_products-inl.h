// The register-blocked micro-kernel of all products of this folder, compiled for each instruction set. To be included
// after Highway, in the form that Highway asks of such headers: its guard opens once for each instruction set.

#if defined(GAINLENS_KERNELS_STRIP_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GAINLENS_KERNELS_STRIP_PRODUCTS_INL_H_
#undef GAINLENS_KERNELS_STRIP_PRODUCTS_INL_H_
#else
#define GAINLENS_KERNELS_STRIP_PRODUCTS_INL_H_
#endif

#include "kernels/row_alignment.h"

#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of at most row_alignment bytes, so that a padded row is a whole number of vectors.
template <typename Real>
using Tag = hn::CappedTag<Real, row_alignment / sizeof(Real)>;

template <typename Real>
constexpr std::int64_t Lanes() {
  return static_cast<std::int64_t>(hn::MaxLanes(Tag<Real>()));
}

/// Vectors in a row of a panel. Together with the rows of a strip they fill the registers with rows x vectors sums, the
/// row of the panel and one broadcast number.
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

/// The sums of one strip and one panel, all in registers.
template <typename Real>
using StripSums = hn::Vec<Tag<Real>>[strip_rows][panel_vectors];

/// Sums of left[i row_step + k inner_step] right[k, j] over `inner` > 0 indices k. One of the steps should be a
/// constant 1.
template <typename Real>
HWY_INLINE void MultiplySteppedStrip(std::int64_t inner, const Real* HWY_RESTRICT left, std::int64_t row_step,
                                     std::int64_t inner_step, const Real* HWY_RESTRICT right, StripSums<Real>& sums) {
  const Tag<Real> tag;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < strip_rows; ++i) {  // NOLINT(modernize-loop-convert): written as the loops below
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j) sums[i][j] = hn::Zero(tag);
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    hn::Vec<Tag<Real>> columns[panel_vectors];
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j)
      columns[j] = hn::Load(tag, right + k * PanelColumns<Real>() + j * Lanes<Real>());
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < strip_rows; ++i) {
      const auto element = hn::Set(tag, left[i * row_step + k * inner_step]);
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < panel_vectors; ++j) sums[i][j] = hn::MulAdd(element, columns[j], sums[i][j]);
    }
  }
}

/// Sums of left[i, k] right[k, j] over `inner` > 0 indices k.
template <typename Real>
HWY_INLINE void MultiplyStrip(std::int64_t inner, const Real* HWY_RESTRICT left, std::int64_t left_stride,
                              const Real* HWY_RESTRICT right, StripSums<Real>& sums) {
  MultiplySteppedStrip<Real>(inner, left, left_stride, 1, right, sums);
}

/// result = sums, or result += sums.
template <bool add, typename Real>
HWY_INLINE void StoreStrip(const StripSums<Real>& sums, Real* HWY_RESTRICT result, std::int64_t stride) {
  const Tag<Real> tag;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < strip_rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < panel_vectors; ++j) {
      Real* place = result + i * stride + j * Lanes<Real>();
      hn::Store(add ? hn::Add(sums[i][j], hn::Load(tag, place)) : sums[i][j], tag, place);
    }
  }
}

/// Prefetches one of `shares` shares of the next panel while the current panel is multiplied. A block reads each panel
/// once, from memory or from the third-level cache, and the hardware prefetcher stops at the end of a panel. The target
/// is the second-level cache, since the first level holds the current panel.
template <typename Real>
HWY_INLINE void FetchShare(const Real* next, std::int64_t elements, std::int64_t share, std::int64_t shares) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(Real));
  const std::int64_t step = blocks_of(elements / line, shares) * line, begin = share * step;
  for (std::int64_t i = begin; i < std::min(begin + step, elements); i += line) __builtin_prefetch(next + i, 0, 2);
}

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
