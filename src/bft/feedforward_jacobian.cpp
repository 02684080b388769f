#include "bft/feedforward_jacobian.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gainlens::bft {
namespace {

using kernels::Activation;

at::Tensor activation_value(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::silu:
      return x * at::sigmoid(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_erf:
      return at::gelu(x);
    case Activation::relu:
      return at::relu(x);
    case Activation::squared_relu:
      return at::relu(x).square();
  }
  ASSERT(false, "activation: not a member of Activation");
  return x;
}

at::Tensor gelu_tanh_slope(const at::Tensor& x) {
  const double root = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  const at::Tensor bent = at::tanh(root * (x + cubic * x * x * x));
  return 0.5 * (1 + bent) + 0.5 * x * (1 - bent.square()) * root * (1 + 3 * cubic * x.square());
}

at::Tensor gelu_erf_slope(const at::Tensor& x) {
  const at::Tensor below = 0.5 * (1 + at::erf(x * std::numbers::sqrt2 / 2));
  return below + x * at::exp(-0.5 * x.square()) * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
}

}  // namespace

at::Tensor activation_slope(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::silu: {
      const at::Tensor share = at::sigmoid(x);
      return share * (1 + x * (1 - share));
    }
    case Activation::gelu_tanh:
      return gelu_tanh_slope(x);
    case Activation::gelu_erf:
      return gelu_erf_slope(x);
    case Activation::relu:
      return (x > 0).to(x.scalar_type());
    case Activation::squared_relu:
      return 2 * at::relu(x);
  }
  throw_invalid("Jacobian: a feed-forward layer without an activation; give jacobian none");
}

at::Tensor jacobian(const at::Tensor& up, const at::Tensor& down, const at::Tensor& slopes) {
  return at::matmul(slopes, down.t() * up);
}

JacobianFactors jacobian_factors(const at::Tensor& up, const at::Tensor& down, std::int64_t rank) {
  const at::Tensor product = (down * up.t()).detach();
  const auto [left, values, right] = at::linalg_svd(product, /*full_matrices=*/false);
  const std::int64_t kept = std::min(rank, values.size(0));
  const at::Tensor energy = values.to(at::kDouble).square();
  const auto all = energy.sum().item<double>();
  return {(left.slice(1, 0, kept) * values.slice(0, 0, kept)).contiguous(), right.slice(0, 0, kept).contiguous(),
          all > 0 ? energy.slice(0, 0, kept).sum().item<double>() / all : 1};
}

at::Tensor jacobian(const JacobianFactors& factors, const at::Tensor& slopes) {
  return at::matmul(at::matmul(slopes, factors.right.t()), factors.left.t());
}

at::Tensor jacobian_with_norm(const at::Tensor& up, const at::Tensor& down, const at::Tensor& slopes,
                              const at::Tensor& normalised, const at::Tensor& deviation, const at::Tensor& weight) {
  const auto width = static_cast<double>(weight.size(0));
  const at::Tensor direct = weight * jacobian(up, down, slopes);
  const at::Tensor mean_part = at::matmul(slopes * at::matmul(up, weight), down.t()) / width;
  const at::Tensor along = at::matmul(slopes * at::matmul(normalised * weight, up.t()), down.t());
  return (direct - mean_part - normalised * along / width) / deviation;
}

at::Tensor gated_jacobian(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& down, const at::Tensor& gates,
                          const at::Tensor& neurons, kernels::Activation activation) {
  return jacobian(gate, down, activation_slope(gates, activation) * neurons) +
         jacobian(up, down, activation_value(gates, activation));
}

at::Tensor gated_jacobian(const JacobianFactors& gate_factors, const JacobianFactors& up_factors,
                          const at::Tensor& gates, const at::Tensor& neurons, kernels::Activation activation) {
  return jacobian(gate_factors, activation_slope(gates, activation) * neurons) +
         jacobian(up_factors, activation_value(gates, activation));
}

}  // namespace gainlens::bft
