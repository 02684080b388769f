#include "kernels/gradient/layer_gradients.h"

#include "core/check.h"
#include "kernels/elementwise/row_vectors.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows whose gradients of a weight are summed by one task. The parts are added in order, whatever the threads do.
constexpr std::int64_t rows_per_part = 256;

struct NormFunction : torch::autograd::Function<NormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, bool centre, double epsilon, double offset) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["centre"] = centre;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["offset"] = offset;
    return norm_rows(x, {centre ? NormKind::layer : NormKind::rms, epsilon}, weight, offset,
                     bias.value_or(at::Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_norm");
    const auto saved = context->get_saved_variables();
    const at::Tensor weights = saved[1].contiguous();
    const at::Tensor input_gradient = saved[0].clone(at::MemoryFormat::Contiguous);
    const at::Tensor upstream = gradients[0].contiguous();
    const std::int64_t columns = input_gradient.size(-1), rows = input_gradient.numel() / columns;
    const std::int64_t parts = blocks_of(rows, rows_per_part), elements = weights.numel();
    const bool biased = context->saved_data["bias"].toBool(), centre = context->saved_data["centre"].toBool();
    const double epsilon = context->saved_data["epsilon"].toDouble();
    const auto offset = static_cast<float>(context->saved_data["offset"].toDouble());
    const at::Tensor sums = at::zeros({2, parts, elements});
    const auto* const weight = weights.const_data_ptr<float>();
    const auto* const dy = upstream.const_data_ptr<float>();
    auto* const dx = input_gradient.mutable_data_ptr<float>();
    auto* const all_sums = sums.mutable_data_ptr<float>();
    const RowVectors& vectors = row_vectors();
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> normal(static_cast<std::size_t>(columns));
      for (std::int64_t row = begin * rows_per_part; row < std::min(end * rows_per_part, rows); ++row) {
        const std::int64_t place = row * columns % elements, part = row / rows_per_part;
        float* const sum = all_sums + part * elements + place;
        vectors.norm_gradient(centre, epsilon, weight + place, offset, dy + row * columns, columns, dx + row * columns,
                              normal.data(), sum, biased ? sum + parts * elements : nullptr);
      }
    });
    const auto gradient_of = [&](std::int64_t which) {
      return sums[which].sum(0, false, at::kDouble).to(at::kFloat).view(weights.sizes());
    };
    return {input_gradient, gradient_of(0), biased ? gradient_of(1) : at::Tensor(), {}, {}, {}};
  }
};

struct RotationFunction : torch::autograd::Function<RotationFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& heads, const at::Tensor& cosine,
                            const at::Tensor& sine) {
    context->save_for_backward({cosine, sine});
    return rotated(heads, cosine, sine);
  }

  /// The angles backwards.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_rotation");
    const auto saved = context->get_saved_variables();
    return {rotated(gradients[0], saved[0], saved[1].neg()), {}, {}};
  }
};

/// Gradients of f(gates) neurons; without neurons, of f(gates).
variable_list gate_gradients(const at::Tensor& gates, const at::Tensor& neurons, const at::Tensor& upstream,
                             Activation activation) {
  const at::Tensor left = gates.contiguous(), dy = upstream.contiguous();
  const at::Tensor right = neurons.defined() ? neurons.contiguous() : neurons;
  at::Tensor gradient_of_gates = at::empty_like(left),
             gradient_of_neurons = right.defined() ? at::empty_like(right) : at::Tensor();
  at::parallel_for(0, left.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
    tile_kernels().gate_gradient(activation, end - begin, left.const_data_ptr<float>() + begin,
                                 right.defined() ? right.const_data_ptr<float>() + begin : nullptr,
                                 dy.const_data_ptr<float>() + begin,
                                 gradient_of_gates.mutable_data_ptr<float>() + begin,
                                 right.defined() ? gradient_of_neurons.mutable_data_ptr<float>() + begin : nullptr);
  });
  return {gradient_of_gates, gradient_of_neurons};
}

struct GateFunctionNode : torch::autograd::Function<GateFunctionNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gates, const at::Tensor& neurons,
                            std::int64_t activation) {
    context->save_for_backward({gates, neurons});
    context->saved_data["activation"] = activation;
    return gated(gates, neurons, {.activation = static_cast<Activation>(activation)});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_gate");
    const auto saved = context->get_saved_variables();
    const variable_list found = gate_gradients(saved[0], saved[1], gradients[0],
                                               static_cast<Activation>(context->saved_data["activation"].toInt()));
    return {found[0], found[1], {}};
  }
};

struct ActivationNode : torch::autograd::Function<ActivationNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t activation) {
    context->save_for_backward({x});
    context->saved_data["activation"] = activation;
    return activated(x, static_cast<Activation>(activation));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_activation");
    return {gate_gradients(context->get_saved_variables()[0], {}, gradients[0],
                           static_cast<Activation>(context->saved_data["activation"].toInt()))[0],
            {}};
  }
};

struct SlopeNode : torch::autograd::Function<SlopeNode> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, std::int64_t activation) {
    const at::Tensor given = x.contiguous();
    context->save_for_backward({given});
    context->saved_data["activation"] = activation;
    const at::Tensor value = at::empty_like(given), slope = at::empty_like(given);
    at::parallel_for(0, given.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
      tile_kernels().activation_with_slope(
          static_cast<Activation>(activation), end - begin, given.const_data_ptr<float>() + begin,
          value.mutable_data_ptr<float>() + begin, slope.mutable_data_ptr<float>() + begin);
    });
    return {value, slope};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("trained_activation_with_slope");
    const at::Tensor x = context->get_saved_variables()[0];
    const auto upstream = [&](std::size_t i) {
      return gradients[i].defined() ? gradients[i].contiguous() : at::zeros_like(x);
    };
    const at::Tensor gradient_of_value = upstream(0), gradient_of_slope = upstream(1),
                     gradient_of_x = at::empty_like(x);
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    at::parallel_for(0, x.numel(), 16384, [&](std::int64_t begin, std::int64_t end) {
      tile_kernels().slope_gradient(
          activation, end - begin, x.const_data_ptr<float>() + begin, gradient_of_value.const_data_ptr<float>() + begin,
          gradient_of_slope.const_data_ptr<float>() + begin, gradient_of_x.mutable_data_ptr<float>() + begin);
    });
    return {gradient_of_x, {}};
  }
};

}  // namespace

at::Tensor trained_norm(const at::Tensor& x, const NormOptions& options, const at::Tensor& weight, double offset,
                        const at::Tensor& bias) {
  ASSERT(!bias.defined() || bias.sizes() == weight.sizes(), "a norm's bias that is not of its weight's shape");
  ASSERT(x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat, "norms are trained in float32");
  return NormFunction::apply(x, weight, if_defined(bias), options.kind == NormKind::layer, options.epsilon, offset);
}

at::Tensor trained_rotation(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine) {
  ASSERT(heads.scalar_type() == at::kFloat, "rotations are trained in float32");
  return RotationFunction::apply(heads, cosine, sine);
}

at::Tensor trained_gate(const at::Tensor& gates, const at::Tensor& neurons, Activation activation) {
  ASSERT(gates.scalar_type() == at::kFloat && neurons.sizes() == gates.sizes(), "gates are trained in float32");
  return GateFunctionNode::apply(gates, neurons, static_cast<std::int64_t>(activation));
}

at::Tensor trained_activation(const at::Tensor& x, Activation activation) {
  ASSERT(x.scalar_type() == at::kFloat, "activations are trained in float32");
  return ActivationNode::apply(x, static_cast<std::int64_t>(activation));
}

std::pair<at::Tensor, at::Tensor> trained_activation_with_slope(const at::Tensor& x, Activation activation) {
  ASSERT(x.scalar_type() == at::kFloat && x.is_cpu(), "activations are trained in float32");
  const variable_list found = SlopeNode::apply(x, static_cast<std::int64_t>(activation));
  return {found[0], found[1]};
}

}  // namespace gainlens::kernels
