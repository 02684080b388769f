// The polynomial of the exponentials of this folder. To be included after Highway; its guard opens once for each
// instruction set.

#if defined(GAINLENS_KERNELS_POWER_OF_TWO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GAINLENS_KERNELS_POWER_OF_TWO_INL_H_
#undef GAINLENS_KERNELS_POWER_OF_TWO_INL_H_
#else
#define GAINLENS_KERNELS_POWER_OF_TWO_INL_H_
#endif

#include "kernels/strip_products-inl.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// 2^f for f in [-1/2, 1/2]: 1 + f q(f), where q minimises the maximal relative error: 0.77 units in the last place.
HWY_INLINE hn::Vec<Tag<float>> PowerOfFraction(hn::Vec<Tag<float>> fraction) {
  const Tag<float> tag;
  auto power = hn::Set(tag, 0x1.5bba0ap-10F);
  power = hn::MulAdd(power, fraction, hn::Set(tag, 0x1.3cea88p-7F));
  power = hn::MulAdd(power, fraction, hn::Set(tag, 0x1.c6b752p-5F));
  power = hn::MulAdd(power, fraction, hn::Set(tag, 0x1.ebf9bcp-3F));
  power = hn::MulAdd(power, fraction, hn::Set(tag, 0x1.62e42ap-1F));
  return hn::MulAdd(power, fraction, hn::Set(tag, 1.0F));
}

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
