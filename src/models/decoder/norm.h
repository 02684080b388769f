#pragma once

#include "models/decoder/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <functional>

namespace gainlens::models {

/// The tensor in the type of normalisation: float64 stays, all others become float32.
at::Tensor widened(const at::Tensor& x);

/// x / sqrt(mean(x^2) + epsilon) over the last dimension, widened.
at::Tensor rms_normalised(const at::Tensor& x, double epsilon);

/// (x - mean(x)) / sqrt(var(x) + epsilon) over the last dimension, widened.
at::Tensor layer_normalised(const at::Tensor& x, double epsilon);

/// One of the two above, chosen by `kind`.
at::Tensor normalised(const at::Tensor& x, Norm kind, double epsilon);

/// The largest magnitude of x at which no norm of its rows overflows. Infinite where vector code computes the norm,
/// which scales such rows.
/// @param x  [.., n]
double largest_normalised(const at::Tensor& x);

/// (offset + weight) x + bias in the type of x, rounded once to the type of the weight.
/// @param x     widened
/// @param bias  may be undefined
at::Tensor scaled(const at::Tensor& x, const at::Tensor& weight, double offset = 0, const at::Tensor& bias = {});

/// The norm of each row, times (offset + weight), plus bias, in the type of the weight: scaled(normalised(x)). Without
/// gradients in one pass over memory (kernels::norm_rows), with the same bits.
at::Tensor norm(const at::Tensor& x, Norm kind, double epsilon, const at::Tensor& weight, double offset,
                const at::Tensor& bias = {});

/// What norm() multiplies each number of x by while the mean and the deviation of its row are held, widened:
/// (offset + weight) / sqrt(mean(x^2) + epsilon), of a layer norm (offset + weight) / sqrt(var(x) + epsilon).
at::Tensor norm_factor(const at::Tensor& x, Norm kind, double epsilon, const at::Tensor& weight, double offset);

/// norm() with a site for hooks between the norm and its weight. The site has the type of x. If no hook replaces what
/// it shows, the bits are those of norm().
/// @param replaced  whether an intervention is attached to the site
/// @param show      returns what the norm continues with
at::Tensor norm_with_site(const at::Tensor& x, Norm kind, double epsilon, const at::Tensor& weight, double offset,
                          const at::Tensor& bias, bool replaced,
                          const std::function<at::Tensor(const at::Tensor&)>& show);

}  // namespace gainlens::models
