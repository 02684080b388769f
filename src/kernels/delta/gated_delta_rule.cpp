#include "kernels/delta/gated_delta_rule.h"

#include "core/check.h"
#include "kernels/fixed_sizes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace gainlens::kernels {
namespace {

constexpr double length_epsilon = 1e-6;  // of l2norm in the reference

/// Sizes of the inputs, after they were found to fit.
struct Sizes {
  std::int64_t batch, positions, key_heads, value_heads, key_dim, value_dim;
};

void check_shape(const at::Tensor& tensor, std::string_view name, at::IntArrayRef shape, at::ScalarType type) {
  CHECK(tensor.defined() && tensor.sizes() == shape && tensor.scalar_type() == type,
        "gated delta rule: {} does not fit the keys and values in shape or type", name);
}

Sizes checked(const DeltaInputs& inputs, const at::Tensor& state) {
  const at::Tensor &key = inputs.key, &value = inputs.value;
  CHECK(key.defined() && key.dim() == 4 && value.defined() && value.dim() == 4 && key.numel() > 0 && value.numel() > 0,
        "gated delta rule: keys and values must be [batch, position, head, size], with at least one element");
  const Sizes sizes{key.size(0), key.size(1), key.size(2), value.size(2), key.size(3), value.size(3)};
  const at::ScalarType type = value.scalar_type();
  CHECK(type == at::kFloat || type == at::kDouble, "gated delta rule: the values are {}; must be float32 or float64",
        c10::toString(type));
  CHECK(sizes.value_heads % sizes.key_heads == 0,
        "gated delta rule: {} value heads over {} key heads; the first must be a multiple of the second",
        sizes.value_heads, sizes.key_heads);
  check_shape(key, "key", key.sizes(), type);
  check_shape(inputs.query, "query", key.sizes(), type);
  check_shape(value, "value", {sizes.batch, sizes.positions, sizes.value_heads, sizes.value_dim}, type);
  check_shape(inputs.log_decay, "log_decay", {sizes.batch, sizes.positions, sizes.value_heads}, type);
  check_shape(inputs.beta, "beta", {sizes.batch, sizes.positions, sizes.value_heads}, type);
  if (state.defined())
    check_shape(state, "state", {sizes.batch, sizes.value_heads, sizes.key_dim, sizes.value_dim}, type);
  CHECK(!at::gt(inputs.log_decay, 0).any().item<bool>(), "gated delta rule: a log decay is above 0; must be 0 or less");
  return sizes;
}

at::Tensor initial_state(const Sizes& sizes, const at::Tensor& state, const at::Tensor& like) {
  if (state.defined()) return state;
  return at::zeros({sizes.batch, sizes.value_heads, sizes.key_dim, sizes.value_dim}, like.options());
}

/// Inputs of some positions, with heads first and a head of queries and keys for each value head: query, key [batch,
/// head, position, key_dim], value [.., value_dim], log_decay and beta [batch, head, position, 1].
DeltaInputs heads_first(const DeltaInputs& inputs, std::int64_t begin, std::int64_t end) {
  const std::int64_t served = inputs.value.size(2) / inputs.key.size(2);
  const auto some = [&](const at::Tensor& tensor) { return tensor.slice(1, begin, end).transpose(1, 2); };
  const auto repeated = [&](const at::Tensor& tensor) { return at::repeat_interleave(some(tensor), served, 1); };
  return {repeated(inputs.query), repeated(inputs.key), some(inputs.value).contiguous(),
          some(inputs.log_decay).unsqueeze(-1), some(inputs.beta).unsqueeze(-1)};
}

/// Adds positions at the end that write nothing and let nothing decay. So the last chunk of a short text has the
/// matrix products of a full one, which may round in another way for other shapes.
DeltaInputs filled_chunk(const DeltaInputs& inputs) {
  const std::int64_t missing = delta_chunk_positions - inputs.key.size(2);
  if (missing == 0) return inputs;
  const auto filled = [missing](const at::Tensor& tensor) { return at::constant_pad_nd(tensor, {0, 0, 0, missing}); };
  return {filled(inputs.query), filled(inputs.key), filled(inputs.value), filled(inputs.log_decay),
          filled(inputs.beta)};
}

/// D [.., i, j] of the header: exp(g_{j+1} + .. + g_i) for i >= j, else 0.
/// @param log_decay  [.., position, 1]
at::Tensor pairwise_decay(const at::Tensor& log_decay) {
  const std::int64_t positions = log_decay.size(-2);
  std::vector<std::int64_t> shape = log_decay.sizes().vec();
  shape.back() = positions;
  const at::Tensor lower = at::ones({positions, positions}, log_decay.options().dtype(at::kBool)).tril();
  const at::Tensor sums = log_decay.expand(shape).tril(-1).cumsum(-2);
  return sums.exp().masked_fill(lower.logical_not(), 0);
}

}  // namespace

at::Tensor gated_delta_rule_recurrent(const DeltaInputs& inputs, at::Tensor& state) {
  const Sizes sizes = checked(inputs, state);
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.key_dim));
  at::Tensor now = initial_state(sizes, state, inputs.value);
  at::Tensor output = at::empty(inputs.value.sizes(), inputs.value.options());
  for (std::int64_t t = 0; t < sizes.positions; ++t) {
    const auto [query, key, value, log_decay, beta] = heads_first(inputs, t, t + 1);  // [batch, head, 1, ..]
    now = now * log_decay.exp();
    const at::Tensor correction = beta * (value - at::matmul(key, now));
    now = now + at::matmul(key.transpose(-1, -2), correction);
    output.slice(1, t, t + 1).copy_((at::matmul(query, now) * scale).transpose(1, 2));
  }
  state = now;
  return output;
}

at::Tensor gated_delta_rule_chunked(const DeltaInputs& inputs, at::Tensor& state) {
  const Sizes sizes = checked(inputs, state);
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.key_dim));
  at::Tensor now = initial_state(sizes, state, inputs.value);
  at::Tensor output = at::empty(inputs.value.sizes(), inputs.value.options());
  for (std::int64_t begin = 0; begin < sizes.positions; begin += delta_chunk_positions) {
    const std::int64_t end = std::min(begin + delta_chunk_positions, sizes.positions);
    const auto [query, key, value, log_decay, beta] = filled_chunk(heads_first(inputs, begin, end));
    const at::Tensor decay = pairwise_decay(log_decay);
    const at::Tensor from_start = log_decay.cumsum(-2).exp();      // [.., position, 1]
    const at::Tensor to_end = decay.select(-2, -1).unsqueeze(-1);  // [.., position, 1]
    const at::Tensor keys_transposed = key.transpose(-1, -2);

    const at::Tensor system = at::matmul(key, keys_transposed) * decay * beta;  // only its lower triangle is read
    const at::Tensor unpredicted = beta * (value - from_start * at::matmul(key, now));
    const at::Tensor corrections = at::linalg_solve_triangular(system, unpredicted, /*upper=*/false, /*left=*/true,
                                                               /*unitriangular=*/true);

    const at::Tensor from_state = at::matmul(query * from_start, now);
    const at::Tensor from_chunk = at::matmul(at::matmul(query, keys_transposed) * decay, corrections);
    output.slice(1, begin, end).copy_(((from_state + from_chunk) * scale).narrow(2, 0, end - begin).transpose(1, 2));
    now = now * from_start.slice(-2, -1) + at::matmul((key * to_end).transpose(-1, -2), corrections);
  }
  state = now;
  return output;
}

at::Tensor l2_normalised(const at::Tensor& x) {
  const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const at::Tensor squares = wide.square().sum(-1, /*keepdim=*/true);
  if (!at::isfinite(squares).all().item<bool>())
    throw_run_failed("linear attention: the squares of queries or keys overflow{}",
                     x.scalar_type() == at::kDouble ? "" : "; use --dtype float64");
  return wide * at::rsqrt(squares + length_epsilon);
}

}  // namespace gainlens::kernels
