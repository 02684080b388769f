#include "kernels/cuda/fused_call.h"

#include "core/check.h"
#include "kernels/attention_sequences.h"
#include "kernels/composed/attention_composed.h"
#include "kernels/composed/composed_summary.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t max_positions = 4'000'000;              // blocks of queries are numbered with 16 bits
constexpr std::int64_t scratch_bytes = std::int64_t{1} << 28;  // for the thread blocks of one launch

FusedElement element_of(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return FusedElement::bfloat16;
    case at::kHalf:
      return FusedElement::float16;
    case at::kFloat:
      return FusedElement::float32;
    default:
      throw_invalid(
          "attention_statistics: the fused CUDA kernel computes bfloat16, float16 and float32, not {}; use the "
          "composed backend",
          at::toString(type));
  }
}

int width_of(std::int64_t head_dim) {
  CHECK(head_dim <= 256,
        "attention_statistics: head_dim {}; the fused CUDA kernel computes at most 256, use the composed backend",
        head_dim);
  return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256;
}

/// Rows of `width` values: zero after the tensor's own values, contiguous, at addresses that 16-byte copies can read.
at::Tensor padded_rows(const at::Tensor& tensor, int width) {
  const std::int64_t missing = width - tensor.size(-1);
  at::Tensor rows = (missing > 0 ? at::constant_pad_nd(tensor, {0, missing}) : tensor).contiguous();
  return reinterpret_cast<std::uintptr_t>(rows.const_data_ptr()) % 16 == 0 ? rows : rows.clone();
}

float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

FusedFields field_pointers(const QueryStatistics& s) {
  return {.n_eff = data_or_null(s.n_eff),
          .entropy = data_or_null(s.entropy),
          .residual = data_or_null(s.residual),
          .observation_precision = data_or_null(s.observation_precision),
          .log_observation_precision = data_or_null(s.log_observation_precision),
          .kalman_gain = data_or_null(s.kalman_gain),
          .kalman_gain_scaled = data_or_null(s.kalman_gain_scaled),
          .without_first_n_eff = data_or_null(s.without_first_n_eff),
          .without_first_residual = data_or_null(s.without_first_residual),
          .without_first_observation_precision = data_or_null(s.without_first_observation_precision),
          .without_first_kalman_gain = data_or_null(s.without_first_kalman_gain),
          .without_first_norm = data_or_null(s.without_first_norm),
          .estimate_norm = data_or_null(s.estimate_norm),
          .gained_estimate_norm = data_or_null(s.gained_estimate_norm),
          .sink_logit_mass = data_or_null(s.sink_logit_mass),
          .first_weight = data_or_null(s.first_weight)};
}

/// The inputs as the kernel reads them.
struct FusedInputs {
  at::Tensor query, key, centred;                  // [head or kv_head, position, width]
  at::Tensor centre, unit, first_offset;           // [kv_head, width]
  at::Tensor size;                                 // [kv_head]
  at::Tensor variance;                             // [kv_head, width] float64, in the squared unit of the values
  at::Tensor inverse_variance;                     // [kv_head, width] or undefined
  at::Tensor key_bias, distance_bias, sink_logit;  // float32 or undefined
  at::Tensor precision;                            // [head, position, head_dim], expanded, or undefined
};

/// The largest power of two up to each number, 1 for 0. In this unit squares neither underflow nor overflow.
at::Tensor units_of(const at::Tensor& largest) {
  const at::Tensor exponent = std::get<1>(at::frexp(largest)).sub(1).clamp(-126, 126);
  return at::ldexp(at::ones_like(largest), exponent).masked_fill(largest.eq(0), 1);
}

FusedInputs fused_inputs(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                         const at::Tensor& key, const at::Tensor& value) {
  const int width = width_of(shape.value_dim);
  const at::Tensor values = padded_rows(value.to(at::kFloat), width);
  const at::Tensor centre = values.slice(1, 0, centre_keys).mean(1, /*keepdim=*/true, at::kDouble).to(at::kFloat);
  const at::Tensor unit = units_of((values - centre).abs().amax(1));  // of each dimension
  const at::Tensor centred = (values - centre).div_(unit.unsqueeze(1));
  const at::Tensor variance = at::var(centred.to(at::kDouble), /*dim=*/1, /*unbiased=*/false);
  FusedInputs in{.query = padded_rows(query, width),
                 .key = padded_rows(key, width),
                 .centred = query.scalar_type() == at::kFloat ? centred : centred.to(at::kBFloat16),
                 .centre = centre.squeeze(1).contiguous(),
                 .unit = unit.contiguous(),
                 .first_offset = centred.select(1, 0).contiguous(),
                 .size = units_of(values.abs().amax({1, 2})).contiguous(),
                 .variance = variance * unit.to(at::kDouble).square(),
                 .key_bias = bias_rows(options.key_bias, at::kFloat),
                 .distance_bias = bias_rows(options.distance_bias, at::kFloat),
                 .precision = precision_rows(options, shape, at::kFloat)};
  if (options.returned.kalman_gain_scaled) {
    in.inverse_variance = variance.reciprocal().masked_fill(variance.eq(0), 0).to(at::kFloat).contiguous();
  }
  if (options.sink_logit.defined()) in.sink_logit = options.sink_logit.to(at::kFloat).contiguous();
  return in;
}

FusedArguments fused_arguments(const AttentionOptions& options, const AttentionShape& shape, const FusedInputs& in,
                               const QueryStatistics& result) {
  const auto stride = [](const at::Tensor& bias) { return bias.defined() && bias.size(0) > 1 ? bias.size(1) : 0; };
  FusedArguments arguments{
      .element = element_of(in.query.scalar_type()),
      .width = width_of(shape.value_dim),
      .head_dim = static_cast<int>(shape.value_dim),
      .heads = static_cast<int>(shape.heads),
      .group = static_cast<int>(shape.group),
      .length = static_cast<int>(shape.length),
      .first_query = static_cast<int>(std::max(options.first_query, options.causal ? centre_keys : 0)),
      .end_query = static_cast<int>(shape.length),
      .query = in.query.const_data_ptr(),
      .key = in.key.const_data_ptr(),
      .centred = in.centred.const_data_ptr(),
      .centre = data_or_null(in.centre),
      .unit = data_or_null(in.unit),
      .size = data_or_null(in.size),
      .first_offset = data_or_null(in.first_offset),
      .inverse_variance = data_or_null(in.inverse_variance),
      .scale = static_cast<float>(shape.scale),
      .soft_cap = static_cast<float>(options.soft_cap),
      .causal = options.causal,
      // A window as long as the text hides no key.
      .window = options.window && *options.window < shape.length ? static_cast<int>(*options.window) : 0,
      .key_bias = data_or_null(in.key_bias),
      .distance_bias = data_or_null(in.distance_bias),
      .key_bias_stride = stride(in.key_bias),
      .distance_bias_stride = stride(in.distance_bias),
      .sink_logit = data_or_null(in.sink_logit),
      .prior_strength = static_cast<float>(options.prior_strength),
      .prior_total = static_cast<float>(options.prior_strength * shape.prior_variance),
      .prior_precision = static_cast<float>(options.prior_precision),
      .fields = field_pointers(result),
      .output = result.output.defined() ? result.output.mutable_data_ptr() : nullptr,
      .first_mass = data_or_null(result.first_mass),
      .first_masses = static_cast<int>(options.returned.first_masses),
      .residual_by_dimension = data_or_null(result.residual_by_dimension),
      .precision_by_dimension = data_or_null(result.observation_precision_by_dimension),
      .scratch = nullptr};
  if (in.precision.defined()) {
    arguments.precision = static_cast<const float*>(in.precision.const_data_ptr());
    for (int i = 0; i < 3; ++i) arguments.precision_strides[i] = in.precision.stride(i);
  }
  return arguments;
}

/// Launches the kernel over ranges of queries. A range has as many queries as the scratch memory allows.
void launch_ranges(FusedArguments arguments, const at::Device& device, const FusedLauncher& launch) {
  // Upper bound of the keys that a block reads: those that its queries see, in whole tiles.
  const int reach =
      arguments.window > 0 ? std::min(arguments.window + 2 * fused_rows, arguments.length) : arguments.length;
  const bool chains_end = reach > fused_chain_keys(arguments.element);
  const std::int64_t doubles = arguments.heads * fused_scratch_doubles(arguments.width);  // of fused_rows queries
  const std::int64_t ranges =
      std::max<std::int64_t>(1, scratch_bytes / (doubles * static_cast<std::int64_t>(sizeof(double))));
  const std::int64_t step = chains_end ? ranges * fused_rows : arguments.length, end = arguments.end_query;
  const std::int64_t rows = std::min(step, (end - arguments.first_query + fused_rows - 1) / fused_rows * fused_rows);
  at::Tensor scratch;
  if (chains_end) scratch = at::empty({doubles * rows / fused_rows}, at::TensorOptions(at::kDouble).device(device));
  arguments.scratch = scratch.defined() ? scratch.mutable_data_ptr<double>() : nullptr;
  for (std::int64_t begin = arguments.first_query; begin < end; begin += step) {
    arguments.first_query = static_cast<int>(begin);
    arguments.end_query = static_cast<int>(std::min(begin + step, end));
    launch(arguments);
  }
}

}  // namespace

QueryStatistics attention_fused(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                const at::Tensor& key, const at::Tensor& value, const FusedLauncher& launch) {
  CHECK(shape.length <= max_positions,
        "attention_statistics: {} positions; the fused CUDA kernel computes at most {}, use the composed backend",
        shape.length, max_positions);
  CHECK(shape.key_dim == shape.value_dim,
        "attention_statistics: keys of {} dimensions and values of {}; the fused CUDA kernel computes only equal "
        "widths, use the composed backend",
        shape.key_dim, shape.value_dim);
  element_of(query.scalar_type());  // refuses float64 before any work
  const at::NoGradGuard without_gradients;
  const FusedInputs in = fused_inputs(options, shape, query, key, value);
  QueryStatistics result = allocate_statistics(options, shape, at::kFloat, query);
  const at::Tensor variance = in.variance.slice(1, 0, shape.value_dim);
  result.value_variance.copy_(variance);
  const FusedArguments arguments = fused_arguments(options, shape, in, result);
  if (arguments.first_query < arguments.length) launch_ranges(arguments, query.device(), launch);
  if (options.causal && options.first_query < centre_keys) {
    const QueryStatistics first = attention_composed_first(options, shape, query, key, value, variance);
    copy_positions(first, 0, result);
  }
  finish_statistics(options, result);
  return result;
}

}  // namespace gainlens::kernels
