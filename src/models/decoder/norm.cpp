#include "models/decoder/norm.h"

#include "kernels/elementwise/row_functions.h"
#include "kernels/gradient/layer_gradients.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

namespace gainlens::models {

at::Tensor widened(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

at::Tensor rms_normalised(const at::Tensor& x, double epsilon) {
  const at::Tensor wide = widened(x);
  return wide * at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon);
}

at::Tensor layer_normalised(const at::Tensor& x, double epsilon) {
  const at::Tensor wide = widened(x);
  const at::Tensor centred = wide - wide.mean(-1, /*keepdim=*/true);
  return centred * at::rsqrt(centred.pow(2).mean(-1, /*keepdim=*/true) + epsilon);
}

namespace {

kernels::NormOptions options_of(Norm kind, double epsilon) {
  return {kind == Norm::rms ? kernels::NormKind::rms : kernels::NormKind::layer, epsilon};
}

/// Whether vector code may take a norm's input and its parameters; the bias may be undefined.
bool all_one_pass(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return kernels::one_pass(x) && kernels::one_pass(weight) && (!bias.defined() || kernels::one_pass(bias));
}

}  // namespace

at::Tensor normalised(const at::Tensor& x, Norm kind, double epsilon) {
  if (kernels::one_pass(x)) return kernels::normalised(x, options_of(kind, epsilon));
  return kind == Norm::rms ? rms_normalised(x, epsilon) : layer_normalised(x, epsilon);
}

double largest_normalised(const at::Tensor& x) {
  const bool in_vectors = x.is_cpu() && (x.scalar_type() == at::kFloat || kernels::one_pass(x));
  if (in_vectors) return std::numeric_limits<double>::infinity();
  const double largest = x.scalar_type() == at::kDouble ? std::numeric_limits<double>::max()
                                                        : static_cast<double>(std::numeric_limits<float>::max());
  return std::sqrt(largest / static_cast<double>(x.size(-1)));
}

at::Tensor scaled(const at::Tensor& x, const at::Tensor& weight, double offset, const at::Tensor& bias) {
  if (all_one_pass(x, weight, bias)) return kernels::scaled_rows(x, weight, offset, bias);
  const at::Tensor wide = widened(weight);
  at::Tensor result = (offset == 0 ? wide : wide + offset) * x;
  if (bias.defined()) result = result + widened(bias);
  return result.to(weight.scalar_type());
}

at::Tensor norm(const at::Tensor& x, Norm kind, double epsilon, const at::Tensor& weight, double offset,
                const at::Tensor& bias) {
  if (all_one_pass(x, weight, bias)) return kernels::norm_rows(x, options_of(kind, epsilon), weight, offset, bias);
  if (x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat)
    return kernels::trained_norm(x, options_of(kind, epsilon), weight, offset, bias);
  return scaled(normalised(x, kind, epsilon), weight, offset, bias);
}

at::Tensor norm_factor(const at::Tensor& x, Norm kind, double epsilon, const at::Tensor& weight, double offset) {
  at::Tensor wide = widened(x);
  if (kind == Norm::layer) wide = wide - wide.mean(-1, /*keepdim=*/true);
  return at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon) * (widened(weight) + offset);
}

at::Tensor norm_with_site(const at::Tensor& x, Norm kind, double epsilon, const at::Tensor& weight, double offset,
                          const at::Tensor& bias, bool replaced,
                          const std::function<at::Tensor(const at::Tensor&)>& show) {
  const auto shown = [&] { return show(normalised(x, kind, epsilon).to(x.scalar_type())); };
  if (replaced) return scaled(widened(shown()), weight, offset, bias);
  {
    const at::NoGradGuard no_gradients;
    shown();
  }
  return norm(x, kind, epsilon, weight, offset, bias);
}

}  // namespace gainlens::models
