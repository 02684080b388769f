#include "kernels/elementwise/row_vectors.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/row_vectors.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "kernels/stored_vectors-inl.h"
#include "kernels/vector_table-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace {  // other files of vector code may use the same names
namespace hn = hwy::HWY_NAMESPACE;

using Floats = Tag<float>;
using Vector = hn::Vec<Floats>;

HWY_INLINE Vector LoadFloats(const float* row, std::int64_t index, std::int64_t count) {
  return LoadStored(ElementType::float32, row, index, count);
}

/// Calls work(index, count) for the vectors of a row; the last one may be short.
template <typename Work>
HWY_INLINE void ForEachVector(std::int64_t count, const Work& work) {
  std::int64_t i = 0;
  for (; i + Lanes<float>() <= count; i += Lanes<float>()) work(i, Lanes<float>());
  if (i < count) work(i, count - i);
}

void Widen(ElementType type, const void* from, std::int64_t count, float* HWY_RESTRICT to) {
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
    StoreStored(ElementType::float32, LoadStored(type, from, i, lanes), to, i, lanes);
  });
}

void Narrow(ElementType type, const float* HWY_RESTRICT from, std::int64_t count, void* to) {
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes)
                           HWY_ATTR { StoreStored(type, LoadFloats(from, i, lanes), to, i, lanes); });
}

float NormaliseBy(bool centre, double epsilon, std::int64_t count, float* HWY_RESTRICT x, bool scaled = false);

/// NormaliseBy for numbers whose sum or squares overflow. They are multiplied by a power of two first, which a norm
/// does not change. What this makes too small to be stored is 1e-9 of the largest number or less.
HWY_NOINLINE float NormaliseLarge(bool centre, double epsilon, std::int64_t count, float* HWY_RESTRICT x) {
  constexpr float scale = 0x1p-96F;  // squares of any float32 numbers become at most 2e19
  const Floats tag;
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
    StoreStored(ElementType::float32, hn::Mul(LoadFloats(x, i, lanes), hn::Set(tag, scale)), x, i, lanes);
  });
  const auto square = static_cast<double>(scale) * static_cast<double>(scale);
  return NormaliseBy(centre, epsilon * square, count, x, /*scaled=*/true) * scale;
}

/// @param scaled  the numbers come from NormaliseLarge
/// @returns the factor 1 / sqrt(.. + epsilon)
float NormaliseBy(bool centre, double epsilon, std::int64_t count, float* HWY_RESTRICT x, bool scaled) {
  const Floats tag;
  const auto length = static_cast<double>(count);
  auto mean = hn::Zero(tag);
  if (centre) {
    auto sum = hn::Zero(tag);
    ForEachVector(count,
                  [&](std::int64_t i, std::int64_t lanes) HWY_ATTR { sum = hn::Add(sum, LoadFloats(x, i, lanes)); });
    const float total = hn::GetLane(hn::SumOfLanes(tag, sum));
    if (!std::isfinite(total) && !scaled) return NormaliseLarge(centre, epsilon, count, x);
    mean = hn::Set(tag, static_cast<float>(static_cast<double>(total) / length));
  }
  // Two sums: each rounds half as often, and neither waits for the other.
  auto even = hn::Zero(tag), odd = hn::Zero(tag);
  std::int64_t i = 0;
  for (; i + 2 * Lanes<float>() <= count; i += 2 * Lanes<float>()) {
    const auto first = hn::Sub(hn::LoadU(tag, x + i), mean),
               second = hn::Sub(hn::LoadU(tag, x + i + Lanes<float>()), mean);
    hn::StoreU(first, tag, x + i);
    hn::StoreU(second, tag, x + i + Lanes<float>());
    even = hn::MulAdd(first, first, even);
    odd = hn::MulAdd(second, second, odd);
  }
  for (; i < count; i += Lanes<float>()) {
    const std::int64_t lanes = std::min<std::int64_t>(Lanes<float>(), count - i);
    const auto inside = hn::FirstN(tag, static_cast<std::size_t>(lanes));
    const auto centred = hn::IfThenElseZero(inside, hn::Sub(LoadFloats(x, i, lanes), mean));
    StoreStored(ElementType::float32, centred, x, i, lanes);
    even = hn::MulAdd(centred, centred, even);
  }
  const auto squares = static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, hn::Add(even, odd))));
  // Numbers that are centred already have a mean of 0.
  if (!std::isfinite(squares) && !scaled) return NormaliseLarge(centre, epsilon, count, x);
  const auto by = static_cast<float>(1 / std::sqrt(squares / length + epsilon));
  const auto factor = hn::Set(tag, by);
  ForEachVector(count, [&](std::int64_t index, std::int64_t lanes) HWY_ATTR {
    StoreStored(ElementType::float32, hn::Mul(LoadFloats(x, index, lanes), factor), x, index, lanes);
  });
  return by;
}

void Normalise(bool centre, double epsilon, std::int64_t count, float* x) {
  NormaliseBy(centre, epsilon, count, x);
}

/// sums += numbers, for the first `lanes` lanes.
HWY_INLINE void AddTo(float* HWY_RESTRICT sums, Vector numbers, std::int64_t index, std::int64_t lanes) {
  const auto sum = hn::Add(LoadFloats(sums, index, lanes), numbers);
  StoreStored(ElementType::float32, sum, sums, index, lanes);
}

void NormGradient(bool centre, double epsilon, const float* weight, float offset, const float* dy, std::int64_t count,
                  float* HWY_RESTRICT x, float* HWY_RESTRICT n, float* dweight, float* dbias) {
  const Floats tag;
  const auto shift = hn::Set(tag, offset);
  std::copy_n(x, count, n);
  const auto factor = hn::Set(tag, NormaliseBy(centre, epsilon, count, n));
  auto sum = hn::Zero(tag), product = hn::Zero(tag);
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
    const auto upstream = LoadFloats(dy, i, lanes), normal = LoadFloats(n, i, lanes);
    const auto gradient = hn::Mul(hn::Add(LoadFloats(weight, i, lanes), shift), upstream);
    sum = hn::Add(sum, gradient);
    product = hn::MulAdd(gradient, normal, product);
    if (dweight != nullptr) AddTo(dweight, hn::Mul(upstream, normal), i, lanes);
    if (dbias != nullptr) AddTo(dbias, upstream, i, lanes);
  });
  const auto length = static_cast<double>(count);
  const auto mean = hn::Set(
      tag, centre ? static_cast<float>(static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, sum))) / length) : 0.0F);
  const auto mean_product =
      hn::Set(tag, static_cast<float>(static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, product))) / length));
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
    const auto gradient = hn::Mul(hn::Add(LoadFloats(weight, i, lanes), shift), LoadFloats(dy, i, lanes));
    const auto rest = hn::Sub(hn::Sub(gradient, mean), hn::Mul(LoadFloats(n, i, lanes), mean_product));
    StoreStored(ElementType::float32, hn::Mul(rest, factor), x, i, lanes);
  });
}

void Scale(const float* weight, float offset, const float* bias, std::int64_t count, float* HWY_RESTRICT x) {
  const Floats tag;
  const auto shift = hn::Set(tag, offset);
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes) HWY_ATTR {
    auto y = hn::Mul(hn::Add(LoadFloats(weight, i, lanes), shift), LoadFloats(x, i, lanes));
    if (bias != nullptr) y = hn::Add(y, LoadFloats(bias, i, lanes));
    StoreStored(ElementType::float32, y, x, i, lanes);
  });
}

template <typename Vectors>
HWY_INLINE void RotateBy(Vectors vectors, const float* cosine, const float* sine, std::int64_t pairs, std::int64_t rows,
                         std::int64_t stride, float* HWY_RESTRICT x) {
  const auto width = static_cast<std::int64_t>(hn::Lanes(vectors));
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const first = x + row * stride;
    float* const second = first + pairs;
    std::int64_t i = 0;
    for (; i + width <= pairs; i += width) {
      const auto a = hn::LoadU(vectors, first + i), b = hn::LoadU(vectors, second + i);
      const auto c = hn::LoadU(vectors, cosine + i), s = hn::LoadU(vectors, sine + i);
      hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), vectors, first + i);
      hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), vectors, second + i);
    }
    for (; i < pairs; ++i) {
      const float a = first[i], b = second[i];
      first[i] = a * cosine[i] - b * sine[i];
      second[i] = b * cosine[i] + a * sine[i];
    }
  }
}

void Rotate(const float* cosine, const float* sine, std::int64_t pairs, std::int64_t rows, std::int64_t stride,
            float* HWY_RESTRICT x) {
  // Small heads fill half of a wide vector.
  const hn::CappedTag<float, 8> eight;
  if (pairs < Lanes<float>()) {
    RotateBy(eight, cosine, sine, pairs, rows, stride, x);
  } else {
    RotateBy(Floats(), cosine, sine, pairs, rows, stride, x);
  }
}

float Poison(ElementType type, const void* x, std::int64_t count) {
  const Floats tag;
  auto sum = hn::Zero(tag);
  ForEachVector(count, [&](std::int64_t i, std::int64_t lanes)
                           HWY_ATTR { sum = hn::MulAdd(LoadStored(type, x, i, lanes), hn::Zero(tag), sum); });
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

constexpr RowVectors row_vectors_table = {.widen = Widen,
                                          .narrow = Narrow,
                                          .normalise = Normalise,
                                          .norm_gradient = NormGradient,
                                          .scale = Scale,
                                          .rotate = Rotate,
                                          .poison = Poison};

}  // namespace

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE(RowVectors, row_vectors)
