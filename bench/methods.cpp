#include "bench/methods.h"

#include "core/check.h"
#include "kernels/attention_statistics.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace gainlens::bench {
namespace {

using kernels::AttentionBackend;
using kernels::AttentionOptions;
using kernels::AttentionPlan;
using kernels::ReturnedFields;

constexpr std::int64_t product_size = 2048;  // large enough for the full rate, small enough for every round

/// The fields of the method `statistics`: n_eff, entropy, bos_mass, residual, observation_precision, kalman_gain,
/// output.
ReturnedFields asked_fields() {
  return {.log_observation_precision = false,
          .kalman_gain_scaled = false,
          .without_first = false,
          .norms = false,
          .first_masses = 1};
}

/// [T, T], true if query t sees key j: t - window < j <= t. SDPA has no option for a window.
at::Tensor window_mask(std::int64_t length, std::int64_t window) {
  return at::ones({length, length}, at::TensorOptions(at::kBool)).tril_(0).triu_(1 - window);
}

Method sdpa(const AttentionCase& shape, const AttentionInputs& in) {
  const at::Tensor mask = shape.window ? window_mask(shape.length, *shape.window) : at::Tensor();
  const auto run = [in, mask, grouped = shape.group() > 1] {
    const std::optional<at::Tensor> given = mask.defined() ? std::optional(mask) : std::nullopt;
    at::scaled_dot_product_attention(in.query.unsqueeze(0), in.key.unsqueeze(0), in.value.unsqueeze(0), given,
                                     /*dropout_p=*/0,
                                     /*is_causal=*/!mask.defined(), /*scale=*/{}, grouped);
  };
  return {.name = std::string(method::sdpa),
          .operations = product_operations(shape, 2),
          .held_bytes = mask.defined() ? static_cast<std::int64_t>(mask.nbytes()) : 0,
          .run = run};
}

Method ours(std::string_view name, const AttentionCase& shape, const AttentionInputs& in,
            const ReturnedFields& returned, AttentionBackend backend) {
  AttentionOptions options;
  options.window = shape.window;
  options.returned = returned;
  options.backend = backend;
  const auto plan = std::make_shared<AttentionPlan>(std::move(options));
  return {.name = std::string(name), .operations = product_operations(shape, 3), .run = [plan, in] {
            kernels::attention_statistics(*plan, in.query, in.key, in.value);
          }};
}

/// Computes the fields of one head from its T x T weights, in float32 for half precision. Works in place if that saves
/// memory or time.
void reduce_head(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& hidden,
                 const at::Tensor& output) {
  const auto head_dim = static_cast<double>(query.size(1));
  const at::Tensor scores = at::mm(query, key.t()).mul_(1 / std::sqrt(head_dim));
  const at::Tensor p = scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
  const at::Tensor n_eff = p.square().sum(-1).reciprocal_(), entropy = at::xlogy(p, p).sum(-1).neg_(),
                   bos_mass = p.select(1, 0).clone();
  const at::Tensor estimate = at::mm(p, value), residual = at::mm(p, value.square()).sub_(estimate.square());
  const at::Tensor precision = (n_eff.unsqueeze(1) + 1).div(residual + 1 / head_dim);
  const at::Tensor means[] = {residual.mean(-1), precision.mean(-1), precision.div(precision + 1).mean(-1)};
  output.copy_(estimate);
}

Method materialised(const AttentionCase& shape, const AttentionInputs& in) {
  const auto run = [shape, in] {
    const at::Tensor hidden = shape.window
                                  ? window_mask(shape.length, *shape.window).logical_not_()
                                  : at::ones({shape.length, shape.length}, at::TensorOptions(at::kBool)).triu_(1);
    const at::ScalarType type = shape.dtype == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor output = at::empty_like(in.query);
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t kv_head = head / shape.group();
      reduce_head(in.query[head].to(type), in.key[kv_head].to(type), in.value[kv_head].to(type), hidden, output[head]);
    }
  };
  return {.name = std::string(method::materialised), .operations = product_operations(shape, 3), .run = run};
}

Method matrix_product(at::ScalarType type) {
  const at::Tensor left = at::rand({product_size, product_size}).to(type),
                   right = at::rand({product_size, product_size}).to(type);
  return {.name = std::string(method::matrix_product),
          .operations = 2.0 * product_size * product_size * product_size,
          .run = [left, right] { at::mm(left, right); }};
}

}  // namespace

std::string method_label(std::string_view name) {
  if (name == method::sdpa) return "libtorch SDPA";
  if (name == method::statistics) return "statistics";
  if (name == method::all_fields) return "all fields";
  if (name == method::large_keys) return "with large keys";
  if (name == method::all_keys) return "with all keys";
  if (name == method::composed) return "composed";
  if (name == method::materialised) return "T × T tensors";
  ASSERT(name == method::matrix_product, "no label for '{}'", name);
  return "matrix product";
}

std::vector<Method> methods_of(const AttentionCase& shape, const MethodChoice& choice) {
  const AttentionInputs in = random_inputs(shape);
  std::vector<Method> methods = {
      sdpa(shape, in), ours(method::statistics, shape, in, asked_fields(), AttentionBackend::automatic),
      ours(method::all_fields, shape, in, {}, AttentionBackend::automatic),
      ours(method::large_keys, shape, in, {.key_means = kernels::KeyMeans::above}, AttentionBackend::automatic),
      ours(method::all_keys, shape, in, {.key_means = kernels::KeyMeans::all}, AttentionBackend::automatic)};
  if (choice.composed) methods.push_back(ours(method::composed, shape, in, asked_fields(), AttentionBackend::composed));
  if (choice.materialised) methods.push_back(materialised(shape, in));
  if (choice.matrix_product) methods.push_back(matrix_product(shape.dtype));
  return methods;
}

}  // namespace gainlens::bench
