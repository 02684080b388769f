#include "bft/filter_step.h"

#include "core/check.h"

#include <ATen/ATen.h>

namespace gainlens::bft {
namespace {

at::Tensor bounded(const at::Tensor& precision, const FilterOptions& options) {
  return precision.clamp(options.least_precision, options.most_precision);
}

}  // namespace

at::Tensor gain(const at::Tensor& precision, const at::Tensor& observation_precision) {
  return observation_precision / (precision + observation_precision);
}

at::Tensor least_error_precision(const at::Tensor& observation_precision, const at::Tensor& hidden) {
  return (observation_precision.reciprocal() + hidden.square()).reciprocal();
}

at::Tensor posterior_precision(const at::Tensor& precision, const at::Tensor& observation_precision,
                               const FilterOptions& options) {
  return bounded(precision + observation_precision, options);
}

at::Tensor stretch(const at::Tensor& jacobian) {
  return (1 + jacobian).square().clamp_min(min_stretch);
}

at::Tensor process_noise(const at::Tensor& logits, const FilterOptions& options) {
  return at::softplus(logits) * options.most_process_noise;
}

at::Tensor predicted_precision(const at::Tensor& posterior, const at::Tensor& stretch, const at::Tensor& parameter,
                               const FilterOptions& options) {
  const bool stretched = stretch.defined();
  switch (options.predict) {
    case Predict::jacobian: {
      if (options.most_process_noise == 0) return bounded(stretched ? posterior / stretch : posterior, options);
      ASSERT(parameter.defined(), "predict: no process noise");
      const at::Tensor noise = process_noise(parameter, options);
      return bounded(((stretched ? stretch / posterior : posterior.reciprocal()) + noise).reciprocal(), options);
    }
    case Predict::discount: {
      const at::Tensor kept = posterior * options.discount;
      return bounded(stretched ? kept / stretch : kept, options);
    }
    case Predict::decay: {
      ASSERT(parameter.defined(), "predict: no decay");
      const at::Tensor kept = posterior * at::sigmoid(parameter);
      return bounded(stretched ? kept / stretch : kept, options);
    }
    case Predict::prior:
      break;  // the next layer does not read the posterior: FilterPass::predict()
  }
  ASSERT(false, "predict: not a way from layer to layer");
  return {};
}

}  // namespace gainlens::bft
