#include "training/adamw.h"

#include "core/check.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

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

/// What another process holds of the moments, in a state of all of them: mean and square of each piece. Views.
std::vector<at::Tensor> moments_in(const std::map<std::string, at::Tensor>& state,
                                   const std::vector<ParameterGroup>& groups, const ParameterShare& share) {
  std::vector<at::Tensor> found;
  for (const ParameterPiece& piece : pieces_of(groups, share)) {
    const std::string& name = groups[piece.group].parameters[piece.index].name;
    found.push_back(piece.of(state.at("mean." + name)));
    found.push_back(piece.of(state.at("square." + name)));
  }
  return found;
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

at::Tensor ParameterPiece::of(const at::Tensor& tensor) const {
  if (count == tensor.numel()) return tensor;
  ASSERT(tensor.is_contiguous(), "a part of a tensor that is not contiguous");
  return tensor.detach().view({-1}).narrow(0, first, count);
}

std::vector<ParameterPiece> pieces_of(const std::vector<ParameterGroup>& groups, const ParameterShare& share) {
  std::int64_t all = 0;
  for (const ParameterGroup& group : groups)
    for (const models::NamedTensor& parameter : group.parameters) all += parameter.tensor.numel();
  // Without a product that could overflow.
  const auto border = [&](std::int64_t rank) { return all / share.size * rank + std::min(all % share.size, rank); };
  const std::int64_t begin = border(share.rank), end = border(share.rank + 1);
  std::vector<ParameterPiece> pieces;
  std::int64_t before = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (std::size_t index = 0; index < groups[group].parameters.size(); ++index) {
      const std::int64_t after = before + groups[group].parameters[index].tensor.numel();
      const std::int64_t first = std::max(begin, before), last = std::min(end, after);
      if (first < last)
        pieces.push_back({group, index, first - before, last - first});
      else if (before == after && share.rank == 0)
        pieces.push_back({group, index, 0, 0});  // without elements
      before = after;
    }
  }
  return pieces;
}

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options, const ParameterShare& share)
    : groups_(std::move(groups)), options_(options) {
  check_options(options_);
  std::set<std::string> names;
  for (const ParameterGroup& group : groups_) check_group(group, names);
  CHECK(!names.empty(), "optimiser: no parameters; there is nothing to train");
  for (const ParameterPiece& piece : pieces_of(groups_, share)) {
    const at::Tensor parameter = piece.of(groups_[piece.group].parameters[piece.index].tensor);
    const auto zeros = [&] { return at::zeros_like(parameter, parameter.options().requires_grad(false)); };
    held_.push_back({piece, parameter, zeros(), zeros(),
                     at::zeros({}, parameter.options().dtype(at::kFloat).requires_grad(false))});
  }
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
    std::vector<at::Tensor> parameters, gradients, means, squares, steps;
    for (const Held& held : held_) {
      if (held.piece.group != index) continue;
      const auto& [name, tensor] = group.parameters[held.piece.index];
      ASSERT(tensor.grad().defined(), "parameter {} got no gradient", name);
      parameters.push_back(held.parameter);
      gradients.push_back(held.piece.of(tensor.grad()));
      means.push_back(held.mean);
      squares.push_back(held.square);
      steps.push_back(held.steps);
    }
    if (parameters.empty()) continue;
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(parameters, gradients, means, squares, /*max_exp_avg_sqs=*/{}, steps,
                      options_.learning_rate * factor * group.learning_rate_factor, options_.beta1, options_.beta2,
                      group.weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

std::map<std::string, at::Tensor> AdamW::state() const {
  std::map<std::string, at::Tensor> state;
  for (const ParameterGroup& group : groups_)
    for (const auto& [name, tensor] : group.parameters) state["parameter." + name] = tensor.detach();
  for (const Held& held : held_) {
    const auto& [name, tensor] = groups_[held.piece.group].parameters[held.piece.index];
    ASSERT(held.piece.count == tensor.numel(), "the moments of {} lie in several processes", name);
    state["mean." + name] = held.mean;
    state["square." + name] = held.square;
  }
  return state;
}

void AdamW::restore(const std::map<std::string, at::Tensor>& state, std::int64_t steps) {
  const at::NoGradGuard no_gradients;
  std::map<std::string, at::Tensor> own;  // what each must be like
  for (const ParameterGroup& group : groups_)
    for (const auto& [name, tensor] : group.parameters)
      for (const char* kind : {"parameter.", "mean.", "square."}) own[kind + name] = tensor.detach();
  for (const auto& [name, tensor] : state)
    CHECK(own.contains(name), "training state: '{}' is not a parameter of this model", printable(name, 100));
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    CHECK(found != state.end(), "training state: '{}' is missing", name);
    CHECK(found->second.sizes() == tensor.sizes() && found->second.scalar_type() == tensor.scalar_type(),
          "training state: '{}' has another shape or type than in this model", name);
    if (name.starts_with("parameter.")) tensor.copy_(found->second);
  }
  for (Held& held : held_) {
    const std::string& name = groups_[held.piece.group].parameters[held.piece.index].name;
    held.mean.copy_(held.piece.of(state.at("mean." + name)));
    held.square.copy_(held.piece.of(state.at("square." + name)));
  }
  set_steps(steps);
}

std::vector<at::Tensor> AdamW::moments() const {
  std::vector<at::Tensor> found;
  for (const Held& held : held_) {
    found.push_back(held.mean);
    found.push_back(held.square);
  }
  return found;
}

void AdamW::set_steps(std::int64_t steps) {
  for (Held& held : held_) held.steps.fill_(static_cast<double>(steps));
}

SharedAdamW::SharedAdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options, Replicas& replicas,
                         bool spread_moments)
    : replicas_(replicas),
      spread_(spread_moments && replicas.size() > 1),
      own_(std::move(groups), options, spread_ ? ParameterShare{replicas.rank(), replicas.size()} : ParameterShare{}) {}

double SharedAdamW::sum(double loss) {
  if (replicas_.size() == 1) return loss;
  const at::Tensor total = at::scalar_tensor(loss, at::kDouble);
  std::vector<at::Tensor> shares = own_.gradients();
  shares.push_back(total);
  replicas_.sum(shares);
  return total.item<double>();
}

std::vector<at::Tensor> SharedAdamW::parameter_pieces(std::int64_t rank) const {
  std::vector<at::Tensor> found;
  for (const ParameterPiece& piece : pieces_of(own_.groups(), {rank, replicas_.size()}))
    found.push_back(piece.of(own_.groups()[piece.group].parameters[piece.index].tensor));
  return found;
}

void SharedAdamW::step(double factor) {
  own_.step(factor);
  if (!spread_) return;
  for (std::int64_t rank = 0; rank < replicas_.size(); ++rank) replicas_.copy_from(rank, parameter_pieces(rank));
}

/// The state with room for the moments of all processes, and those of rank 0 in it: a tensor that it holds as a whole
/// is no copy, so that both together take no more than all moments.
std::map<std::string, at::Tensor> SharedAdamW::with_moments_of_first(const std::vector<at::Tensor>& own) const {
  std::map<std::string, at::Tensor> all;
  const std::vector<ParameterPiece> pieces = pieces_of(own_.groups(), {0, replicas_.size()});
  const auto parameter_of = [&](const ParameterPiece& piece) -> const models::NamedTensor& {
    return own_.groups()[piece.group].parameters[piece.index];
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const models::NamedTensor& parameter = parameter_of(pieces[i]);
    if (pieces[i].count < parameter.tensor.numel()) continue;
    all["mean." + parameter.name] = own[2 * i];
    all["square." + parameter.name] = own[2 * i + 1];
  }
  for (const ParameterGroup& group : own_.groups()) {
    for (const auto& [name, tensor] : group.parameters) {
      all["parameter." + name] = tensor.detach();
      for (const char* kind : {"mean.", "square."}) {
        at::Tensor& moment = all[kind + name];
        if (!moment.defined()) moment = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
      }
    }
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const models::NamedTensor& parameter = parameter_of(pieces[i]);
    if (pieces[i].count == parameter.tensor.numel()) continue;
    pieces[i].of(all.at("mean." + parameter.name)).copy_(own[2 * i]);
    pieces[i].of(all.at("square." + parameter.name)).copy_(own[2 * i + 1]);
  }
  return all;
}

std::map<std::string, at::Tensor> SharedAdamW::state() {
  if (!spread_) return own_.state();
  own_.zero_gradients();
  const std::vector<at::Tensor> own = own_.moments();
  std::map<std::string, at::Tensor> all;
  if (replicas_.leads()) all = with_moments_of_first(own);
  for (std::int64_t rank = 1; rank < replicas_.size(); ++rank) {
    replicas_.copy_to(rank, 0, replicas_.leads() ? moments_in(all, own_.groups(), {rank, replicas_.size()}) : own);
  }
  return all;
}

void SharedAdamW::restore(const std::map<std::string, at::Tensor>& state, std::int64_t steps) {
  if (replicas_.leads() && !state.empty()) own_.restore(state, steps);
  if (replicas_.size() == 1) return;
  std::vector<at::Tensor> parameters;
  for (const ParameterGroup& group : own_.groups())
    for (const auto& [name, tensor] : group.parameters) parameters.push_back(tensor);
  replicas_.copy_from_first(parameters);
  if (steps == 0) return;  // all moments are 0
  const std::vector<at::Tensor> own = own_.moments();
  if (!spread_) replicas_.copy_from_first(own);
  for (std::int64_t rank = 1; spread_ && rank < replicas_.size(); ++rank) {
    replicas_.copy_to(0, rank, replicas_.leads() ? moments_in(state, own_.groups(), {rank, replicas_.size()}) : own);
  }
  own_.set_steps(steps);
}

}  // namespace gainlens::training
