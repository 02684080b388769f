#include "bft/fused_step.h"

#include "bft/filter_step.h"
#include "core/check.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gainlens::bft {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t rows_at_once = 128;  // of a task; sums over rows are added task by task, in order

struct Bounds {
  float least, most;
  bool holds(float x) const { return x >= least && x <= most; }
  float cut(float x) const { return std::min(std::max(x, least), most); }
};

/// The variance of an estimate as a function of S, for one query: V = slope S + offset, with the derivatives by n_eff.
struct VarianceOfQuery {
  float slope, offset;  // V = slope S + offset
  float slope_by_n, offset_by_n;

  VarianceOfQuery(bool conjugate, float n, float strength, float prior) {
    if (conjugate) {  // (n S + nu s0) / ((n - 1 + nu) n)
      const float freedom = n - 1 + strength, sum = strength * prior;
      slope = 1 / freedom;
      offset = sum / (freedom * n);
      slope_by_n = -slope * slope;
      offset_by_n = -offset * (freedom + n) / (freedom * n);
    } else {  // (S + nu s0) / (n + nu)
      slope = 1 / (n + strength);
      offset = strength * prior * slope;
      slope_by_n = -slope * slope;
      offset_by_n = -offset * slope;
    }
  }
};

/// What a fused update is told besides tensors.
struct UpdateCall {
  bool conjugate;
  float prior_strength, prior_variance, strength;
  Bounds precision, variance;

  static UpdateCall of(AutogradContext* context) {
    const auto number = [&](const char* key) { return static_cast<float>(context->saved_data[key].toDouble()); };
    return make(context->saved_data["conjugate"].toBool(), number("prior_strength"), number("prior_variance"),
                number("strength"), context->saved_data["least"].toDouble(), context->saved_data["most"].toDouble());
  }
  static UpdateCall make(bool conjugate, float prior_strength, float prior_variance, float strength, double least,
                         double most) {
    return {conjugate,
            prior_strength,
            prior_variance,
            strength,
            {static_cast<float>(least), static_cast<float>(most)},
            {static_cast<float>(1 / most), static_cast<float>(1 / least)}};
  }
};

/// K, with what leads to it.
struct Gain {
  float variance, bounded, observed, gain;
};

inline Gain gain_of(const VarianceOfQuery& query, const Bounds& bounds, float residual, float precision) {
  const float variance = query.slope * residual + query.offset, bounded = bounds.cut(variance);
  return {variance, bounded, 1 / bounded, 1 / (1 + precision * bounded)};
}

struct UpdateNode : torch::autograd::Function<UpdateNode> {
  static variable_list forward(AutogradContext* context, const at::Tensor& estimate, const at::Tensor& n_eff,
                               const at::Tensor& residual, const at::Tensor& precision, bool conjugate,
                               double prior_strength, double prior_variance, double strength, double least,
                               double most) {
    const at::Tensor e = estimate.contiguous(), n = n_eff.contiguous(), s = residual.contiguous(),
                     l = precision.contiguous();
    context->save_for_backward({e, n, s, l});
    context->saved_data["conjugate"] = conjugate;
    context->saved_data["prior_strength"] = prior_strength;
    context->saved_data["prior_variance"] = prior_variance;
    context->saved_data["strength"] = strength;
    context->saved_data["least"] = least;
    context->saved_data["most"] = most;
    const UpdateCall call = UpdateCall::of(context);
    const at::Tensor scaled = at::empty_like(e), posterior = at::empty_like(l);
    const std::int64_t heads = n.size(1), dims = e.size(1) / heads;
    at::parallel_for(0, n.numel(), rows_at_once * heads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const VarianceOfQuery query(call.conjugate, n.const_data_ptr<float>()[i], call.prior_strength,
                                    call.prior_variance);
        const float* const e_row = e.const_data_ptr<float>() + i * dims;
        const float* const s_row = s.const_data_ptr<float>() + i * dims;
        const float* const l_row = l.const_data_ptr<float>() + i * dims;
        float* const out = scaled.mutable_data_ptr<float>() + i * dims;
        float* const next = posterior.mutable_data_ptr<float>() + i * dims;
        for (std::int64_t j = 0; j < dims; ++j) {
          const Gain found = gain_of(query, call.variance, s_row[j], l_row[j]);
          out[j] = (1 + call.strength * (found.gain - 1)) * e_row[j];
          next[j] = call.precision.cut(l_row[j] + found.observed);
        }
      }
    });
    return {scaled, posterior};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    kernels::check_first_derivative("fused_update");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &e = saved[0], &n = saved[1], &s = saved[2], &l = saved[3];
    const UpdateCall call = UpdateCall::of(context);
    const auto upstream = [&](std::size_t i) {
      return gradients[i].defined() ? gradients[i].contiguous() : at::zeros_like(e);
    };
    const at::Tensor scaled_gradient = upstream(0), posterior_gradient = upstream(1);
    const at::Tensor de = at::empty_like(e), dn = at::empty_like(n), ds = at::empty_like(s), dl = at::empty_like(l);
    const std::int64_t heads = n.size(1), dims = e.size(1) / heads;
    at::parallel_for(0, n.numel(), rows_at_once * heads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const VarianceOfQuery query(call.conjugate, n.const_data_ptr<float>()[i], call.prior_strength,
                                    call.prior_variance);
        const auto row = [&](const at::Tensor& x) { return x.const_data_ptr<float>() + i * dims; };
        const auto out = [&](const at::Tensor& x) { return x.mutable_data_ptr<float>() + i * dims; };
        const float *const e_row = row(e), *const s_row = row(s), *const l_row = row(l),
                           *const g = row(scaled_gradient), *const h = row(posterior_gradient);
        float *const to_e = out(de), *const to_s = out(ds), *const to_l = out(dl);
        float by_slope = 0, by_offset = 0;
        for (std::int64_t j = 0; j < dims; ++j) {
          const Gain found = gain_of(query, call.variance, s_row[j], l_row[j]);
          to_e[j] = (1 + call.strength * (found.gain - 1)) * g[j];
          const float kept = call.precision.holds(l_row[j] + found.observed) ? h[j] : 0;
          const float gain_gradient = call.strength * g[j] * e_row[j] * found.gain * found.gain;
          to_l[j] = kept - gain_gradient * found.bounded;
          const float bounded_gradient = -gain_gradient * l_row[j] - kept * found.observed * found.observed;
          const float variance_gradient = call.variance.holds(found.variance) ? bounded_gradient : 0;
          to_s[j] = variance_gradient * query.slope;
          by_slope += variance_gradient * s_row[j];
          by_offset += variance_gradient;
        }
        dn.mutable_data_ptr<float>()[i] = by_slope * query.slope_by_n + by_offset * query.offset_by_n;
      }
    });
    return {de, dn, ds, dl, {}, {}, {}, {}, {}, {}};
  }
};

/// max((1 + J)^2, min_stretch) with its derivative.
struct Stretch {
  float value, slope;
  explicit Stretch(float jacobian) {
    const float root = 1 + jacobian, square = root * root, least = static_cast<float>(min_stretch);
    value = std::max(square, least);
    slope = square >= least ? 2 * root : 0;
  }
};

struct PredictNode : torch::autograd::Function<PredictNode> {
  static variable_list forward(AutogradContext* context, const at::Tensor& posterior, const at::Tensor& jacobian,
                               const at::Tensor& process_noise, double least, double most) {
    const at::Tensor l = posterior.contiguous(), j = jacobian.contiguous(), q = process_noise.contiguous();
    context->save_for_backward({l, j, q});
    context->saved_data["least"] = least;
    context->saved_data["most"] = most;
    const Bounds bounds{static_cast<float>(least), static_cast<float>(most)};
    const std::int64_t rows = l.size(0), width = l.size(1), parts = (rows + rows_at_once - 1) / rows_at_once;
    const at::Tensor predicted = at::empty_like(l), sums = at::zeros({parts, width});
    const float* const noise = q.const_data_ptr<float>();
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin * rows_at_once; row < std::min(end * rows_at_once, rows); ++row) {
        const float* const l_row = l.const_data_ptr<float>() + row * width;
        const float* const j_row = j.const_data_ptr<float>() + row * width;
        float* const out = predicted.mutable_data_ptr<float>() + row * width;
        float* const sum = sums.mutable_data_ptr<float>() + row / rows_at_once * width;
        for (std::int64_t i = 0; i < width; ++i) {
          const Stretch stretch(j_row[i]);
          sum[i] += stretch.value;
          out[i] = bounds.cut(1 / (stretch.value / l_row[i] + noise[i]));
        }
      }
    });
    at::Tensor total = sums.sum(0);
    context->mark_non_differentiable({total});
    return {predicted, total};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    kernels::check_first_derivative("fused_predict");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &l = saved[0], &j = saved[1], &q = saved[2];
    const Bounds bounds{static_cast<float>(context->saved_data["least"].toDouble()),
                        static_cast<float>(context->saved_data["most"].toDouble())};
    const at::Tensor upstream = gradients[0].defined() ? gradients[0].contiguous() : at::zeros_like(l);
    const std::int64_t rows = l.size(0), width = l.size(1), parts = (rows + rows_at_once - 1) / rows_at_once;
    const at::Tensor dl = at::empty_like(l), dj = at::empty_like(j), dq = at::zeros({parts, width});
    const float* const noise = q.const_data_ptr<float>();
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin * rows_at_once; row < std::min(end * rows_at_once, rows); ++row) {
        const float* const l_row = l.const_data_ptr<float>() + row * width;
        const float* const j_row = j.const_data_ptr<float>() + row * width;
        const float* const g = upstream.const_data_ptr<float>() + row * width;
        float* const to_l = dl.mutable_data_ptr<float>() + row * width;
        float* const to_j = dj.mutable_data_ptr<float>() + row * width;
        float* const to_q = dq.mutable_data_ptr<float>() + row / rows_at_once * width;
        for (std::int64_t i = 0; i < width; ++i) {
          const Stretch stretch(j_row[i]);
          const float inverse = 1 / l_row[i], share = stretch.value * inverse, found = 1 / (share + noise[i]);
          const float variance_gradient = bounds.holds(found) ? -g[i] * found * found : 0;
          to_l[i] = -variance_gradient * share * inverse;
          to_j[i] = variance_gradient * inverse * stretch.slope;
          to_q[i] += variance_gradient;
        }
      }
    });
    return {dl, dj, dq.sum(0), {}, {}};
  }
};

}  // namespace

bool fits_fused_steps(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat;
}

bool has_fused_update(const FilterOptions& options) {
  return options.kriging == Kriging::scalar &&
         (options.estimator == Estimator::reml || options.estimator == Estimator::reml_conjugate);
}

std::pair<at::Tensor, at::Tensor> fused_update(const ObservedMoments& observed, const at::Tensor& precision,
                                               const FilterOptions& options, double strength) {
  ASSERT(has_fused_update(options), "fused update: estimator {}", name_of(options.estimator));
  ASSERT(observed.estimate.dim() == 2 && observed.estimate.sizes() == precision.sizes() &&
             observed.residual.sizes() == precision.sizes() && observed.n_eff.dim() == 2 &&
             observed.n_eff.size(0) == precision.size(0) && precision.size(1) % observed.n_eff.size(1) == 0,
         "fused update: shapes do not fit");
  ASSERT(fits_fused_steps(precision), "fused update: float32 on the CPU");
  const auto dims = static_cast<std::size_t>(precision.size(1) / observed.n_eff.size(1));
  const variable_list found = UpdateNode::apply(observed.estimate, observed.n_eff, observed.residual, precision,
                                                options.estimator == Estimator::reml_conjugate, options.prior_strength,
                                                prior_variance(options.estimator_options(), dims), strength,
                                                options.least_precision, options.most_precision);
  return {found[0], found[1]};
}

std::pair<at::Tensor, at::Tensor> fused_predict(const at::Tensor& posterior, const at::Tensor& jacobian,
                                                const at::Tensor& process_noise, const FilterOptions& options) {
  ASSERT(posterior.dim() == 2 && posterior.sizes() == jacobian.sizes() && process_noise.dim() == 1 &&
             process_noise.size(0) == posterior.size(1),
         "fused predict: shapes do not fit");
  ASSERT(fits_fused_steps(posterior), "fused predict: float32 on the CPU");
  const variable_list found =
      PredictNode::apply(posterior, jacobian, process_noise, options.least_precision, options.most_precision);
  return {found[0], found[1]};
}

}  // namespace gainlens::bft
