// Loads and stores vectors of float32 from and to rows of float32, bfloat16 or float16. To be included after Highway
// and strip_products-inl.h; its guard opens once for each instruction set.

#if defined(GAINLENS_KERNELS_STORED_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GAINLENS_KERNELS_STORED_VECTORS_INL_H_
#undef GAINLENS_KERNELS_STORED_VECTORS_INL_H_
#else
#define GAINLENS_KERNELS_STORED_VECTORS_INL_H_
#endif

#include "kernels/element_type.h"
#include "kernels/strip_products-inl.h"

#include "hwy/highway.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Whether the instruction set converts float16 and rounds to nearest.
#undef GAINLENS_CONVERTS_FLOAT16
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
#define GAINLENS_CONVERTS_FLOAT16 1
#else
#define GAINLENS_CONVERTS_FLOAT16 0
#endif

using HalfBits = hn::Rebind<std::uint16_t, Tag<float>>;

HWY_INLINE hn::Vec<Tag<float>> WidenedBfloat16(hn::Vec<HalfBits> bits) {
  const hn::RebindToUnsigned<Tag<float>> wide;
  return hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

/// Rounds to nearest, ties to even; NaN stays NaN.
HWY_INLINE hn::Vec<HalfBits> RoundedBfloat16(hn::Vec<Tag<float>> x) {
  const hn::RebindToUnsigned<Tag<float>> wide;
  const hn::RebindToSigned<Tag<float>> wide_signed;
  const auto bits = hn::BitCast(wide, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7FFFU)));
  const auto quiet = hn::Or(bits, hn::Set(wide, 0x400000U));
  const auto chosen = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(x)), quiet, rounded);
  return hn::DemoteTo(HalfBits(), hn::BitCast(wide_signed, hn::ShiftRight<16>(chosen)));
}

/// The elements [index, index + count) of a row, 0 after them. `count` is at most the number of lanes.
HWY_INLINE hn::Vec<Tag<float>> LoadStored(ElementType type, const void* row, std::int64_t index, std::int64_t count) {
  const Tag<float> tag;
  const bool whole = count == Lanes<float>();
  if (type == ElementType::float32) {
    const float* from = static_cast<const float*>(row) + index;
    if (whole) return hn::LoadU(tag, from);
    HWY_ALIGN float rest[Lanes<float>()] = {};
    std::copy_n(from, count, rest);
    return hn::Load(tag, rest);
  }
  const std::uint16_t* from = static_cast<const std::uint16_t*>(row) + index;
  HWY_ALIGN std::uint16_t rest[Lanes<float>()] = {};
  if (!whole) from = std::copy_n(from, count, rest) - count;
  if (type == ElementType::bfloat16) return WidenedBfloat16(hn::LoadU(HalfBits(), from));
#if GAINLENS_CONVERTS_FLOAT16
  const hn::Rebind<hwy::float16_t, Tag<float>> halves;
  return hn::PromoteTo(tag, hn::BitCast(halves, hn::LoadU(HalfBits(), from)));
#else
  HWY_ALIGN float wide[Lanes<float>()];
  for (std::int64_t i = 0; i < Lanes<float>(); ++i) wide[i] = c10::Half(from[i], c10::Half::from_bits());
  return hn::Load(tag, wide);
#endif
}

/// Stores the first `count` lanes, rounded to nearest.
HWY_INLINE void StoreStored(ElementType type, hn::Vec<Tag<float>> x, void* row, std::int64_t index,
                            std::int64_t count) {
  const Tag<float> tag;
  const bool whole = count == Lanes<float>();
  if (type == ElementType::float32) {
    float* to = static_cast<float*>(row) + index;
    if (whole) return hn::StoreU(x, tag, to);
    HWY_ALIGN float rest[Lanes<float>()];
    hn::Store(x, tag, rest);
    std::copy_n(rest, count, to);
    return;
  }
  std::uint16_t* to = static_cast<std::uint16_t*>(row) + index;
  HWY_ALIGN std::uint16_t rest[Lanes<float>()];
  std::uint16_t* place = whole ? to : rest;
  if (type == ElementType::bfloat16) {
    hn::StoreU(RoundedBfloat16(x), HalfBits(), place);
  } else {
#if GAINLENS_CONVERTS_FLOAT16
    const hn::Rebind<hwy::float16_t, Tag<float>> halves;
    hn::StoreU(hn::BitCast(HalfBits(), hn::DemoteTo(halves, x)), HalfBits(), place);
#else
    HWY_ALIGN float wide[Lanes<float>()];
    hn::Store(x, tag, wide);
    for (std::int64_t i = 0; i < Lanes<float>(); ++i) place[i] = c10::Half(wide[i]).x;
#endif
  }
  if (!whole) std::copy_n(rest, count, to);
}

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
