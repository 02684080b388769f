#include "kernels/gradient/pointwise_rows.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gradient/pointwise_rows.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/strip_products-inl.h"
#include "kernels/stored_vectors-inl.h"
#include "kernels/vector_table-inl.h"
#include "kernels/gradient/row_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace {  // other files of vector code may use the same names
namespace hn = hwy::HWY_NAMESPACE;

using Floats = Tag<float>;
constexpr std::int64_t lanes = Lanes<float>();

void Weights(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* HWY_RESTRICT added,
             const float* HWY_RESTRICT factor, float length, float* HWY_RESTRICT weights, float* HWY_RESTRICT slopes) {
  const Floats tag;
  const float* const q = head.query.data + query * head.query.stride;
  for (std::int64_t key = 0; key < keys; ++key)
    weights[key] = head.scale * Product(q, head.key.data + key * head.key.stride, head.dims);
  for (std::int64_t key = keys; key % lanes != 0; ++key) weights[key] = 0;
  const auto one = hn::Set(tag, 1.0F), share = hn::Set(tag, 1 / length);
  for (std::int64_t key = 0; key < keys; key += lanes) {
    const auto score = hn::Add(hn::Load(tag, weights + key), hn::Load(tag, added + key));
    // Beyond -87 the exponential would overflow; SiLU is 0 there but for 1e-36.
    const auto power = hn::Exp(tag, hn::Neg(hn::Max(score, hn::Set(tag, -87.0F))));
    const auto sigmoid = hn::Div(one, hn::Add(one, power));
    auto scaled = share;
    if (factor != nullptr) scaled = hn::Mul(scaled, hn::Load(tag, factor + key));
    auto weight = hn::Mul(hn::Mul(score, sigmoid), scaled);
    const auto slope = hn::Mul(hn::Mul(sigmoid, hn::MulAdd(score, hn::Sub(one, sigmoid), one)), scaled);
    if (key + lanes > keys) weight = hn::IfThenElseZero(hn::FirstN(tag, static_cast<std::size_t>(keys - key)), weight);
    hn::Store(weight, tag, weights + key);
    hn::Store(slope, tag, slopes + key);
  }
}

void Variance(const PackedHead& head, std::int64_t keys, const float* HWY_RESTRICT shares, const float* mean,
              float* HWY_RESTRICT variance) {
  const Floats tag;
  for (std::int64_t i = 0; i < head.dims; i += lanes) {
    const auto centre = LoadRow(mean, i, head.dims);
    auto sum = hn::Zero(tag);
    for (std::int64_t key = 0; key < keys; ++key) {
      const auto offset = hn::Sub(LoadRow(head.value.data + key * head.value.stride, i, head.dims), centre);
      const auto part = hn::Mul(hn::Set(tag, shares[key]), offset);
      sum = hn::MulAdd(part, part, sum);
    }
    StoreRow(sum, variance, i, head.dims);
  }
}

/// m = sum p^2 o.
HWY_INLINE void FirstMoments(const PackedHead& head, std::int64_t keys, const VarianceGradients& moments, float* to) {
  const Floats tag;
  for (std::int64_t i = 0; i < head.dims; i += lanes) {
    const auto centre = LoadRow(moments.mean, i, head.dims);
    auto sum = hn::Zero(tag);
    for (std::int64_t key = 0; key < keys; ++key) {
      const auto offset = hn::Sub(LoadRow(head.value.data + key * head.value.stride, i, head.dims), centre);
      sum = hn::MulAdd(hn::Set(tag, moments.shares[key] * moments.shares[key]), offset, sum);
    }
    StoreRow(sum, to, i, head.dims);
  }
}

/// sum over dimensions of g_V (2 p o^2 - 2 m o) of one key; adds the gradient of its value.
HWY_INLINE float ShareAndValueGradient(const float* value, float share, const VarianceGradients& moments,
                                       const float* first, std::int64_t dims, float* value_gradients) {
  const Floats tag;
  const auto p = hn::Set(tag, share), twice = hn::Set(tag, 2.0F);
  auto effect = hn::Zero(tag);
  for (std::int64_t i = 0; i < dims; i += lanes) {
    const auto offset = hn::Sub(LoadRow(value, i, dims), LoadRow(moments.mean, i, dims));
    const auto variance_gradient = hn::Mul(twice, LoadRow(moments.variance_gradient, i, dims));
    // 2 g_V (p o - m): times o it is the effect of the share, times p that of the value.
    const auto along = hn::Mul(variance_gradient, hn::MulSub(p, offset, LoadRow(first, i, dims)));
    effect = hn::MulAdd(along, offset, effect);
    StoreRow(hn::MulAdd(along, p, LoadRow(value_gradients, i, dims)), value_gradients, i, dims);
  }
  return hn::GetLane(hn::SumOfLanes(tag, effect));
}

/// Adds the gradients of the weights and of the values by the variance.
HWY_INLINE void AddVarianceGradients(const PackedHead& head, std::int64_t keys, const float* HWY_RESTRICT weights,
                                     const VarianceGradients& moments, float* room,
                                     float* HWY_RESTRICT weight_gradients, float* HWY_RESTRICT share_gradients,
                                     HeadGradients value_gradients) {
  FirstMoments(head, keys, moments, room);
  float along_shares = 0, shares = 0;
  for (std::int64_t key = 0; key < keys; ++key) {
    share_gradients[key] =
        ShareAndValueGradient(head.value.data + key * head.value.stride, moments.shares[key], moments, room, head.dims,
                              value_gradients.data + key * value_gradients.stride);
    along_shares += share_gradients[key] * moments.shares[key];
    shares += moments.shares[key];
  }
  // Offsets stand for values above: the rest is -2 m.g_V e for every key, and cancels where the shares sum to one.
  float rest = 0;
  if (moments.raised_slope != 0) {
    for (std::int64_t i = 0; i < head.dims; ++i) rest -= 2 * room[i] * moments.variance_gradient[i] * moments.mean[i];
  }
  for (std::int64_t key = 0; key < keys; ++key) {
    const float sign = weights[key] < 0 ? -1.0F : weights[key] > 0 ? 1.0F : 0.0F;
    const float slope = moments.raised_slope != 0 ? moments.raised_slope * sign : 1.0F;
    weight_gradients[key] += (share_gradients[key] + rest - (along_shares + rest * shares) * slope) / moments.sum;
  }
}

void Gradients(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* HWY_RESTRICT weights,
               const float* HWY_RESTRICT slopes, const float* HWY_RESTRICT factors, const float* gradient,
               const VarianceGradients* moments, float* HWY_RESTRICT weight_gradients,
               float* HWY_RESTRICT score_gradients, float* room, float* query_gradient, HeadGradients key_gradients,
               HeadGradients value_gradients) {
  for (std::int64_t key = 0; key < keys; ++key) {
    weight_gradients[key] = 0;
    if (factors[key] == 0) continue;
    weight_gradients[key] = factors[key] * Product(gradient, head.value.data + key * head.value.stride, head.dims);
    Add(weights[key] * factors[key], gradient, head.dims, value_gradients.data + key * value_gradients.stride);
  }
  if (moments != nullptr)
    AddVarianceGradients(head, keys, weights, *moments, room, weight_gradients, score_gradients, value_gradients);
  const float* const q = head.query.data + query * head.query.stride;
  std::fill_n(query_gradient, head.dims, 0.0F);
  for (std::int64_t key = 0; key < keys; ++key) {
    score_gradients[key] = weight_gradients[key] * slopes[key];
    const float product_gradient = head.scale * score_gradients[key];
    Add(product_gradient, head.key.data + key * head.key.stride, head.dims, query_gradient);
    Add(product_gradient, q, head.dims, key_gradients.data + key * key_gradients.stride);
  }
}

constexpr PointwiseRows pointwise_rows_table = {.weights = Weights, .variance = Variance, .gradients = Gradients};

}  // namespace

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE(PointwiseRows, pointwise_rows)
