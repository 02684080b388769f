#include "training/shared_adamw.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::training {
namespace {

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
