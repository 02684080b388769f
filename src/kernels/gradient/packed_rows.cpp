#include "kernels/gradient/packed_rows.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gradient/packed_rows.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/strip_products-inl.h"
#include "kernels/stored_vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace {  // other files of vector code may use the same names
namespace hn = hwy::HWY_NAMESPACE;

using Floats = Tag<float>;
using Vector = hn::Vec<Floats>;

constexpr std::int64_t lanes = Lanes<float>();

/// The numbers of a row from index i on, 0 after `dims` numbers.
HWY_INLINE Vector LoadRow(const float* row, std::int64_t i, std::int64_t dims) {
  return LoadStored(ElementType::float32, row, i, std::min(lanes, dims - i));
}

HWY_INLINE float Product(const float* left, const float* right, std::int64_t dims) {
  const Floats tag;
  auto sum = hn::Zero(tag);
  for (std::int64_t i = 0; i < dims; i += lanes) sum = hn::MulAdd(LoadRow(left, i, dims), LoadRow(right, i, dims), sum);
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// to += factor row.
HWY_INLINE void Add(float factor, const float* row, std::int64_t dims, float* to) {
  const Floats tag;
  const auto scale = hn::Set(tag, factor);
  for (std::int64_t i = 0; i < dims; i += lanes) {
    const auto sum = hn::MulAdd(scale, LoadRow(row, i, dims), LoadRow(to, i, dims));
    StoreStored(ElementType::float32, sum, to, i, std::min(lanes, dims - i));
  }
}

void Weights(const PackedHead& head, std::int64_t query, std::int64_t keys, float* HWY_RESTRICT weights) {
  const Floats tag;
  const float* const q = head.query.data + query * head.query.stride;
  float largest = -3.4028235e38F;
  for (std::int64_t key = 0; key < keys; ++key) {
    weights[key] = head.scale * Product(q, head.key.data + key * head.key.stride, head.dims);
    largest = std::max(largest, weights[key]);
  }
  // exp of a difference of -100 or less is 0 in float32, as the last vector's missing keys must be.
  for (std::int64_t key = keys; key % lanes != 0; ++key) weights[key] = largest - 200;
  const auto shift = hn::Set(tag, largest);
  auto total = hn::Zero(tag);
  for (std::int64_t key = 0; key < keys; key += lanes) {
    const auto power = hn::Exp(tag, hn::Sub(hn::Load(tag, weights + key), shift));
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

void Gradients(const PackedHead& head, std::int64_t query, std::int64_t keys, const float* HWY_RESTRICT weights,
               const float* HWY_RESTRICT factors, const float* gradient, float* HWY_RESTRICT room, float* of_query,
               HeadGradients of_key, HeadGradients of_value) {
  float mean = 0;
  for (std::int64_t key = 0; key < keys; ++key) {
    room[key] = 0;
    if (factors[key] == 0) continue;
    room[key] = factors[key] * Product(gradient, head.value.data + key * head.value.stride, head.dims);
    mean += weights[key] * room[key];
    Add(weights[key] * factors[key], gradient, head.dims, of_value.data + key * of_value.stride);
  }
  const float* const q = head.query.data + query * head.query.stride;
  std::fill_n(of_query, head.dims, 0.0F);
  for (std::int64_t key = 0; key < keys; ++key) {
    const float of_score = head.scale * weights[key] * (room[key] - mean);
    Add(of_score, head.key.data + key * head.key.stride, head.dims, of_query);
    Add(of_score, q, head.dims, of_key.data + key * of_key.stride);
  }
}

constexpr PackedRows packed_rows_of_target = {.weights = Weights, .mix = Mix, .gradients = Gradients};

}  // namespace

// Highway dispatches plain functions.
const PackedRows* PackedRowsOfTarget() {
  return &packed_rows_of_target;
}

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gainlens::kernels {

HWY_EXPORT(PackedRowsOfTarget);

const PackedRows& packed_rows() {
  return *HWY_DYNAMIC_DISPATCH(PackedRowsOfTarget)();
}

}  // namespace gainlens::kernels
#endif  // HWY_ONCE
