#include "kernels/gradient/packed_rows.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <cstdlib>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gradient/packed_rows.cpp"
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

void Weights(const PackedHead& head, std::int64_t query, std::int64_t keys, float* HWY_RESTRICT weights) {
  const Floats tag;
  const float* const q = head.query.data + query * head.query.stride;
  float largest = -3.4028235e38F;
  for (std::int64_t key = 0; key < keys; ++key) {
    weights[key] = head.scale * Product(q, head.key.data + key * head.key.stride, head.dims);
    if (head.key_bias != nullptr) weights[key] += head.key_bias[key];
    weights[key] += head.distance_slope * static_cast<float>(std::abs(query - key));
    largest = std::max(largest, weights[key]);
  }
  for (std::int64_t key = keys; key % lanes != 0; ++key) weights[key] = largest;  // the last vector's missing keys
  const auto shift = hn::Set(tag, largest);
  auto total = hn::Zero(tag);
  for (std::int64_t key = 0; key < keys; key += lanes) {
    auto power = hn::Exp(tag, hn::Sub(hn::Load(tag, weights + key), shift));
    if (key + lanes > keys) power = hn::IfThenElseZero(hn::FirstN(tag, static_cast<std::size_t>(keys - key)), power);
    hn::Store(power, tag, weights + key);
    total = hn::Add(total, power);
  }
  const auto inverse = hn::Set(tag, 1 / hn::GetLane(hn::SumOfLanes(tag, total)));
  for (std::int64_t key = 0; key < keys; key += lanes)
    hn::Store(hn::Mul(hn::Load(tag, weights + key), inverse), tag, weights + key);
}

void Mix(const PackedHead& head, std::int64_t keys, const float* HWY_RESTRICT weights, float* HWY_RESTRICT to) {
  const Floats tag;
  for (std::int64_t i = 0; i < head.dims; i += lanes) {
    auto sum = hn::Zero(tag);
    for (std::int64_t key = 0; key < keys; ++key)
      sum =
          hn::MulAdd(hn::Set(tag, weights[key]), LoadRow(head.value.data + key * head.value.stride, i, head.dims), sum);
    StoreStored(ElementType::float32, sum, to, i, std::min(lanes, head.dims - i));
  }
}

float Moments(const PackedHead& head, std::int64_t keys, const float* HWY_RESTRICT weights, const float* mean,
              float* HWY_RESTRICT residual) {
  const Floats tag;
  for (std::int64_t i = 0; i < head.dims; i += lanes) {
    const auto centre = LoadRow(mean, i, head.dims);
    auto sum = hn::Zero(tag);
    for (std::int64_t key = 0; key < keys; ++key) {
      const auto offset = hn::Sub(LoadRow(head.value.data + key * head.value.stride, i, head.dims), centre);
      sum = hn::MulAdd(hn::Mul(hn::Set(tag, weights[key]), offset), offset, sum);
    }
    StoreStored(ElementType::float32, sum, residual, i, std::min(lanes, head.dims - i));
  }
  auto squares = hn::Zero(tag);  // weights beyond the keys are 0
  for (std::int64_t key = 0; key < keys; key += lanes) {
    const auto weight = hn::Load(tag, weights + key);
    squares = hn::MulAdd(weight, weight, squares);
  }
  return hn::GetLane(hn::SumOfLanes(tag, squares));
}

/// Effect of one weight on the loss through output and S; adds the gradient of the value.
HWY_INLINE float WeightAndValueGradient(const float* value, float weight, float factor, const float* gradient,
                                        const MomentGradients& moments, std::int64_t dims, float* value_gradients) {
  const Floats tag;
  const auto share = hn::Set(tag, factor), twice = hn::Set(tag, 2 * weight), dropped = hn::Set(tag, weight * factor);
  auto effect = hn::Zero(tag);
  for (std::int64_t i = 0; i < dims; i += lanes) {
    const auto v = LoadRow(value, i, dims), offset = hn::Sub(v, LoadRow(moments.mean, i, dims));
    const auto output_gradient = LoadRow(gradient, i, dims),
               along = hn::Mul(LoadRow(moments.residual, i, dims), offset);
    effect = hn::MulAdd(hn::Mul(share, output_gradient), v, effect);
    effect = hn::MulAdd(along, offset, effect);
    const auto sum = hn::MulAdd(twice, along, hn::MulAdd(dropped, output_gradient, LoadRow(value_gradients, i, dims)));
    StoreStored(ElementType::float32, sum, value_gradients, i, std::min(lanes, dims - i));
  }
  return hn::GetLane(hn::SumOfLanes(tag, effect)) + 2 * moments.squares * weight;
}

void Gradients(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* HWY_RESTRICT weights,
               const float* HWY_RESTRICT factors, const float* gradient, const MomentGradients* moments,
               float* HWY_RESTRICT score_gradients, float* query_gradient, HeadGradients key_gradients,
               HeadGradients value_gradients) {
  float mean = 0;
  for (std::int64_t key = 0; key < keys; ++key) {
    const float* const value = head.value.data + key * head.value.stride;
    float* const value_gradient = value_gradients.data + key * value_gradients.stride;
    score_gradients[key] = 0;
    if (moments != nullptr) {
      score_gradients[key] =
          WeightAndValueGradient(value, weights[key], factors[key], gradient, *moments, head.dims, value_gradient);
    } else if (factors[key] != 0) {
      score_gradients[key] = factors[key] * Product(gradient, value, head.dims);
      Add(weights[key] * factors[key], gradient, head.dims, value_gradient);
    }
    mean += weights[key] * score_gradients[key];
  }
  const float* const q = head.query.data + query * head.query.stride;
  std::fill_n(query_gradient, head.dims, 0.0F);
  for (std::int64_t key = 0; key < keys; ++key) {
    score_gradients[key] = weights[key] * (score_gradients[key] - mean);
    const float product_gradient = head.scale * score_gradients[key];
    Add(product_gradient, head.key.data + key * head.key.stride, head.dims, query_gradient);
    Add(product_gradient, q, head.dims, key_gradients.data + key * key_gradients.stride);
  }
}

constexpr PackedRows packed_rows_table = {.weights = Weights, .mix = Mix, .moments = Moments, .gradients = Gradients};

}  // namespace

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE(PackedRows, packed_rows)
