#include "training/adamw.h"

#include "core/check.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <set>

namespace gainlens::training {
namespace {

void check_options(const AdamWOptions& options) {
  CHECK(std::isfinite(options.learning_rate) && options.learning_rate > 0, "learning rate: {}; must be positive",
        options.learning_rate);
  CHECK(options.beta1 >= 0 && options.beta1 < 1, "beta1: {}; must be in [0, 1)", options.beta1);
  CHECK(options.beta2 >= 0 && options.beta2 < 1, "beta2: {}; must be in [0, 1)", options.beta2);
  CHECK(options.epsilon > 0 && std::isfinite(options.epsilon), "epsilon: {}; must be positive", options.epsilon);
}

void check_group(const ParameterGroup& group, std::set<std::string>& names) {
  CHECK(group.weight_decay >= 0 && std::isfinite(group.weight_decay), "weight decay of {}: {}; must not be negative",
        group.name, group.weight_decay);
  CHECK(group.learning_rate_factor >= 0 && std::isfinite(group.learning_rate_factor),
        "learning rate factor of {}: {}; must not be negative", group.name, group.learning_rate_factor);
  for (const auto& [name, tensor] : group.parameters) {
    ASSERT(names.insert(name).second, "parameter {} is in the optimiser twice", name);
    ASSERT(tensor.is_leaf() && tensor.requires_grad(), "parameter {} is not a leaf tensor with gradients", name);
  }
}

}  // namespace

std::vector<ParameterGroup> parameter_groups(const std::vector<models::NamedTensor>& weights,
                                             const std::vector<models::NamedTensor>& precisions, double weight_decay,
                                             double precision_factor) {
  std::vector<ParameterGroup> groups{{"matrices", {}, 1, weight_decay}, {"norms and biases", {}, 1, 0}};
  for (const models::NamedTensor& weight : weights)
    groups[weight.tensor.dim() > 1 ? 0 : 1].parameters.push_back(weight);
  if (!precisions.empty()) groups.push_back({"precisions", precisions, precision_factor, 0});
  return groups;
}

void give_missing_gradients(const std::vector<models::NamedTensor>& parameters) {
  for (const models::NamedTensor& parameter : parameters) {
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(parameter.tensor);
  }
}

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : groups_(std::move(groups)), options_(options) {
  check_options(options_);
  std::set<std::string> names;
  for (const ParameterGroup& group : groups_) {
    check_group(group, names);
    Moments& moments = moments_.emplace_back();
    for (const auto& [name, tensor] : group.parameters) {
      moments.parameter.push_back(tensor);
      moments.mean.push_back(at::zeros_like(tensor, tensor.options().requires_grad(false)));
      moments.square.push_back(at::zeros_like(tensor, tensor.options().requires_grad(false)));
      moments.steps.push_back(at::zeros({}, tensor.options().dtype(at::kFloat).requires_grad(false)));
    }
  }
  CHECK(!names.empty(), "optimiser: no parameters; there is nothing to train");
}

void AdamW::zero_gradients() {
  for (const ParameterGroup& group : groups_) {
    for (const auto& [name, tensor] : group.parameters) tensor.mutable_grad() = at::Tensor();
  }
}

std::vector<at::Tensor> AdamW::gradients() {
  std::vector<at::Tensor> found;
  for (const ParameterGroup& group : groups_) {
    for (const auto& [name, tensor] : group.parameters) {
      at::Tensor& gradient = tensor.mutable_grad();
      gradient = gradient.defined() ? gradient.contiguous() : at::zeros_like(tensor, at::MemoryFormat::Contiguous);
      found.push_back(gradient);
    }
  }
  return found;
}

double AdamW::clip_gradients(double max_norm) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> gradients;
  double squares = 0;  // summed in double and in a fixed order, so that every run gives the same bits
  for (const ParameterGroup& group : groups_) {
    for (const auto& [name, tensor] : group.parameters) {
      ASSERT(tensor.grad().defined(), "parameter {} got no gradient", name);
      gradients.push_back(tensor.grad());
      const double norm = tensor.grad().norm().item<double>();
      squares += norm * norm;
    }
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) throw_run_failed("training: the gradient is NaN or infinite");
  if (max_norm > 0 && norm > max_norm) at::_foreach_mul_(gradients, max_norm / norm);
  return norm;
}

void AdamW::step(double factor) {
  const at::NoGradGuard no_gradients;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    const ParameterGroup& group = groups_[index];
    Moments& moments = moments_[index];
    if (moments.parameter.empty()) continue;
    std::vector<at::Tensor> gradients;
    for (const auto& [name, tensor] : group.parameters) {
      ASSERT(tensor.grad().defined(), "parameter {} got no gradient", name);
      gradients.push_back(tensor.grad());
    }
    at::_foreach_add_(moments.steps, 1);
    at::_fused_adamw_(moments.parameter, gradients, moments.mean, moments.square, /*max_exp_avg_sqs=*/{}, moments.steps,
                      options_.learning_rate * factor * group.learning_rate_factor, options_.beta1, options_.beta2,
                      group.weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

std::map<std::string, at::Tensor> AdamW::state() const {
  std::map<std::string, at::Tensor> state;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    for (std::size_t i = 0; i < groups_[index].parameters.size(); ++i) {
      const std::string& name = groups_[index].parameters[i].name;
      state["parameter." + name] = moments_[index].parameter[i].detach();
      state["mean." + name] = moments_[index].mean[i];
      state["square." + name] = moments_[index].square[i];
    }
  }
  return state;
}

void AdamW::restore(const std::map<std::string, at::Tensor>& state, std::int64_t steps) {
  const at::NoGradGuard no_gradients;
  auto own = this->state();
  for (const auto& [name, tensor] : state)
    CHECK(own.contains(name), "training state: '{}' is not a parameter of this model", printable(name, 100));
  for (auto& [name, tensor] : own) {
    const auto found = state.find(name);
    CHECK(found != state.end(), "training state: '{}' is missing", name);
    CHECK(found->second.sizes() == tensor.sizes() && found->second.scalar_type() == tensor.scalar_type(),
          "training state: '{}' has another shape or type than in this model", name);
    tensor.copy_(found->second);
  }
  for (Moments& moments : moments_) {
    for (at::Tensor& count : moments.steps) count.fill_(static_cast<double>(steps));
  }
}

}  // namespace gainlens::training
