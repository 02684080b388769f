#include "depth/linearised_layer.h"

#include "bft/feedforward_jacobian.h"
#include "models/decoder/activation.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::depth {
namespace {

/// The rows of x that a part has.
at::Tensor taken(const at::Tensor& x, const at::Tensor& rows) {
  return rows.defined() ? x.index_select(0, rows) : x;
}

}  // namespace

LinearisedLayer::LinearisedLayer(const models::DecoderConfig& config, const models::LayerProjections& projections,
                                 const at::Tensor& input, const at::Tensor& experts)
    : zeros_(at::zeros_like(input)) {
  if (!experts.defined()) {
    parts_.push_back(part_of(config, projections.mlp_gate, projections.mlp_up, projections.mlp_down, input));
    return;
  }
  for (std::int64_t expert = 0; expert < experts.size(1); ++expert) {
    const at::Tensor share = experts.select(1, expert), rows = share.nonzero().squeeze(1);
    if (rows.numel() == 0) continue;
    const auto index = static_cast<std::size_t>(expert);
    Part part = part_of(config, projections.expert_gate[index], projections.expert_up[index],
                        projections.expert_down[index], input.index_select(0, rows));
    part.rows = rows;
    part.share = share.index_select(0, rows).unsqueeze(1);
    parts_.push_back(std::move(part));
  }
  if (config.experts.shared_width > 0) add_shared_expert(config, projections, input);
}

LinearisedLayer::Part LinearisedLayer::part_of(const models::DecoderConfig& config, const models::Projection& gate,
                                               const models::Projection& up, const models::Projection& down,
                                               const at::Tensor& input) {
  Part part{.up = up.weight(), .down = down.weight()};
  const at::Tensor neurons = up(input);
  if (!gate.defined()) {
    part.up_slopes = bft::activation_slope(neurons, config.activation);
    return part;
  }
  const at::Tensor gates = gate(input);
  part.gate = gate.weight();
  part.gate_slopes = bft::activation_slope(gates, config.activation) * neurons;
  part.up_slopes = models::activated(gates, config.activation);
  return part;
}

void LinearisedLayer::add_shared_expert(const models::DecoderConfig& config,
                                        const models::LayerProjections& projections, const at::Tensor& input) {
  Part part = part_of(config, projections.shared_gate, projections.shared_up, projections.shared_down, input);
  if (config.experts.shared_score) {
    const at::Tensor share = at::sigmoid(projections.shared_score(input));  // [row, 1]
    // up_slopes are phi(g), so these are the neurons.
    const at::Tensor output = projections.shared_down(part.up_slopes * projections.shared_up(input));
    scores_.push_back({output, share * (1 - share), projections.shared_score.weight().squeeze(0)});
    part.share = share;
  }
  parts_.push_back(std::move(part));
}

template <typename Term>
at::Tensor LinearisedLayer::sum(const Term& term) const {
  at::Tensor total = zeros_.clone();
  for (const Part& part : parts_) {
    at::Tensor found = term(part);
    if (part.share.defined()) found = found * part.share;
    if (part.rows.defined()) {
      total.index_add_(0, part.rows, found);
    } else {
      total += found;
    }
  }
  return total;
}

at::Tensor LinearisedLayer::diagonal() const {
  at::Tensor total = sum([](const Part& part) {
    const at::Tensor up_jacobian = bft::jacobian(part.up, part.down, part.up_slopes);
    return part.gate.defined() ? up_jacobian + bft::jacobian(part.gate, part.down, part.gate_slopes) : up_jacobian;
  });
  for (const Score& score : scores_) total += score.output * score.slope * score.weight;
  return total;
}

at::Tensor LinearisedLayer::matrix(std::int64_t row) const {
  const std::int64_t width = zeros_.size(1);
  at::Tensor total = at::zeros({width, width}, zeros_.options());
  for (const Part& part : parts_) {
    std::int64_t own = row;
    if (part.rows.defined()) {
      const at::Tensor place = part.rows.eq(row).nonzero();
      if (place.numel() == 0) continue;  // the row has not chosen this expert
      own = place.item<std::int64_t>();
    }
    at::Tensor neurons = part.up_slopes[own].unsqueeze(1) * part.up;  // [neuron, width]
    if (part.gate.defined()) neurons = neurons + part.gate_slopes[own].unsqueeze(1) * part.gate;
    const at::Tensor found = at::matmul(part.down, neurons);
    total += part.share.defined() ? found * part.share[own] : found;
  }
  for (const Score& score : scores_)
    total += (score.output[row] * score.slope[row]).unsqueeze(1) * score.weight.unsqueeze(0);
  return total;
}

at::Tensor LinearisedLayer::times(const at::Tensor& x) const {
  at::Tensor total = sum([&](const Part& part) {
    const at::Tensor own = taken(x, part.rows);
    at::Tensor neurons = part.up_slopes * at::matmul(own, part.up.t());
    if (part.gate.defined()) neurons += part.gate_slopes * at::matmul(own, part.gate.t());
    return at::matmul(neurons, part.down.t());
  });
  for (const Score& score : scores_) total += score.output * score.slope * (x * score.weight).sum(1, /*keepdim=*/true);
  return total;
}

at::Tensor LinearisedLayer::transposed_times(const at::Tensor& y) const {
  at::Tensor total = sum([&](const Part& part) {
    const at::Tensor neurons = at::matmul(taken(y, part.rows), part.down);
    at::Tensor found = at::matmul(part.up_slopes * neurons, part.up);
    if (part.gate.defined()) found += at::matmul(part.gate_slopes * neurons, part.gate);
    return found;
  });
  for (const Score& score : scores_) total += (score.output * y).sum(1, /*keepdim=*/true) * score.slope * score.weight;
  return total;
}

}  // namespace gainlens::depth
