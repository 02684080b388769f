#include "kernels/gradient/attention_gradient.h"

#include "core/check.h"
#include "kernels/attention_sequences.h"
#include "kernels/composed/exact_products.h"
#include "kernels/gradient/attention_moments.h"
#include "kernels/gradient_tracking.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool needs_gradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

at::Tensor in_type_of(const at::Tensor& gradient, const at::Tensor& input) {
  return gradient.defined() ? gradient.view(input.sizes()).to(input.scalar_type()) : at::Tensor();
}

/// What the forward pass keeps for the backward pass, except tensors. libtorch saves the tensors itself, so that it
/// notices a change between the two passes.
struct SavedCall : torch::CustomClassHolder {
  AttentionOptions options;  // without tensors
  AttentionShape shape;
  bool moments = false;
  WantedGradients wanted{};
};

/// One sequence under autograd. The tensors of the options are passed a second time as arguments, because libtorch
/// tracks only arguments.
struct SequenceFunction : torch::autograd::Function<SequenceFunction> {
  static variable_list forward(AutogradContext* context, const AttentionOptions& options, const AttentionShape& shape,
                               bool moments, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const std::optional<at::Tensor>&, const std::optional<at::Tensor>&,
                               const std::optional<at::Tensor>&) {
    const ExactProducts exact;
    const AttentionMoments result = attention_moments(ScoreInputs(options, shape, query, key), value, moments);
    auto saved = c10::make_intrusive<SavedCall>();
    saved->options = options;
    saved->options.key_bias = saved->options.distance_bias = saved->options.sink_logit = at::Tensor();
    saved->shape = shape;
    saved->moments = moments;
    saved->wanted = {needs_gradient(query),
                     needs_gradient(key),
                     needs_gradient(value),
                     needs_gradient(options.key_bias),
                     needs_gradient(options.distance_bias),
                     needs_gradient(options.sink_logit)};
    context->saved_data["call"] = at::IValue::make_capsule(saved);
    context->set_materialize_grads(false);
    context->save_for_backward(
        {query, key, value, options.key_bias, options.distance_bias, options.sink_logit, result.centred_estimate});
    if (!moments) return {result.output};
    return {result.output, result.n_eff, result.residual};
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    CHECK(!at::GradMode::is_enabled(),
          "attention_with_gradient: a second derivative was asked for (create_graph); only first derivatives exist");
    const ExactProducts exact;
    const auto call = c10::static_intrusive_pointer_cast<SavedCall>(context->saved_data["call"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2];
    AttentionOptions options = call->options;
    options.key_bias = saved[3];
    options.distance_bias = saved[4];
    options.sink_logit = saved[5];

    const ScoreInputs in(options, call->shape, query, key);
    const auto in_compute_type = [&](std::size_t index) {
      return index < incoming.size() && incoming[index].defined() ? incoming[index].to(in.query.scalar_type())
                                                                  : at::Tensor();
    };
    const AttentionMoments gradients{in_compute_type(0), in_compute_type(1), in_compute_type(2), {}};
    const AttentionGradients out =
        attention_moment_gradients(in, value, call->moments, saved[6], gradients, call->wanted);
    return {{},
            {},
            {},
            in_type_of(out.query, query),
            in_type_of(out.key, key),
            in_type_of(out.value, value),
            in_type_of(out.key_bias, options.key_bias),
            in_type_of(out.distance_bias, options.distance_bias),
            in_type_of(out.sink_logit, options.sink_logit)};
  }
};

DifferentiableAttention one_sequence(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value, bool moments) {
  const AttentionShape shape = checked_shape("attention_with_gradient", options, query, key, value);
  const bool tracked =
      at::GradMode::is_enabled() &&
      (needs_gradient(query) || needs_gradient(key) || needs_gradient(value) || needs_gradient(options.key_bias) ||
       needs_gradient(options.distance_bias) || needs_gradient(options.sink_logit));
  if (!tracked) {
    const at::NoGradGuard no_gradient;
    const ExactProducts exact;
    const AttentionMoments result = attention_moments(ScoreInputs(options, shape, query, key), value, moments);
    return {result.output, result.n_eff, result.residual};
  }
  const variable_list result =
      SequenceFunction::apply(options, shape, moments, query, key, value, if_defined(options.key_bias),
                              if_defined(options.distance_bias), if_defined(options.sink_logit));
  if (!moments) return {result[0], {}, {}};
  return {result[0], result[1], result[2]};
}

/// The lengths of the parts of a text, in order: padding, sequence, padding, ..., sequence, padding. A length may be 0.
std::vector<std::int64_t> cuts(const std::vector<Sequence>& sequences, std::int64_t length) {
  std::vector<std::int64_t> lengths;
  std::int64_t done = 0;
  for (const Sequence& sequence : sequences) {
    lengths.push_back(sequence.begin - done);
    lengths.push_back(sequence.end - sequence.begin);
    done = sequence.end;
  }
  lengths.push_back(length - done);
  return lengths;
}

DifferentiableAttention padding(const at::Tensor& query, std::int64_t value_dim, bool moments, at::ScalarType type) {
  DifferentiableAttention none;
  none.output = at::zeros({query.size(0), query.size(1), value_dim}, query.options().requires_grad(false));
  if (!moments) return none;
  none.residual =
      at::full(none.output.sizes(), std::numeric_limits<double>::quiet_NaN(), none.output.options().dtype(type));
  none.n_eff = none.residual.select(2, 0);
  return none;
}

DifferentiableAttention packed_sequences(const AttentionOptions& options, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value, bool moments) {
  // One split instead of a narrow for each sequence: the gradient of a narrowed part is as large as the whole tensor.
  const std::vector<std::int64_t> lengths = cuts(options.sequences, query.size(1));
  const auto queries = query.split_with_sizes(lengths, 1), keys = key.split_with_sizes(lengths, 1),
             values = value.split_with_sizes(lengths, 1);
  const at::ScalarType type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  std::vector<at::Tensor> outputs, n_effs, residuals;
  for (std::size_t part = 0; part < lengths.size(); ++part) {
    const bool is_sequence = part % 2 == 1;
    const DifferentiableAttention result = is_sequence ? one_sequence(options_of(options, options.sequences[part / 2]),
                                                                      queries[part], keys[part], values[part], moments)
                                                       : padding(queries[part], value.size(2), moments, type);
    outputs.push_back(result.output);
    n_effs.push_back(result.n_eff);
    residuals.push_back(result.residual);
  }
  if (!moments) return {at::cat(outputs, 1), {}, {}};
  return {at::cat(outputs, 1), at::cat(n_effs, 1), at::cat(residuals, 1)};
}

}  // namespace

DifferentiableAttention attention_with_gradient(const AttentionOptions& options, const at::Tensor& query,
                                                const at::Tensor& key, const at::Tensor& value, Moments moments) {
  constexpr const char* where = "attention_with_gradient";
  {
    const at::NoGradGuard no_gradient;  // the checks must not become part of the graph
    const AttentionShape shape = checked_shape(where, options, query, key, value);
    check_magnitudes(where, query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat, shape, query, key, value);
  }
  const bool all = moments == Moments::all;
  return options.sequences.empty() ? one_sequence(options, query, key, value, all)
                                   : packed_sequences(options, query, key, value, all);
}

}  // namespace gainlens::kernels
