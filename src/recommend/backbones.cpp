#include "core/check.h"
#include "core/nearest.h"
#include "kernels/gradient/trained_loss.h"
#include "recommend/backbone.h"
#include "recommend/hstu_backbone.h"
#include "recommend/sasrec_backbone.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::recommend {

const std::vector<BackboneKind>& backbones() {
  static const std::vector<BackboneKind> all = {sasrec_backbone(), bert4rec_backbone(), hstu_backbone()};
  return all;
}

const BackboneKind& backbone_named(std::string_view name, const std::string& where) {
  std::vector<std::string> names;
  for (const BackboneKind& kind : backbones()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw_invalid("{}: '{}'; must be {}{}", where, printable(name, 60), fmt::join(names, " or "),
                did_you_mean(name, names));
}

LastStates Backbone::last_states(const PackedSequences& sequences) const {
  return {run(sequences).index_select(0, sequences.last_rows()), {}};
}

at::Tensor Backbone::mean_loss(const at::Tensor& hidden, const at::Tensor& targets) const {
  const ScoreFactors factors = score_factors(hidden);
  return kernels::trained_mean_loss(factors.hidden, factors.head, targets - 1);
}

ScoreFactors Backbone::score_factors(const at::Tensor& hidden) const {
  const at::Tensor bias = head_bias();
  if (!bias.defined()) return {hidden, head()};
  const at::Tensor ones = at::ones({hidden.size(0), 1}, hidden.options().requires_grad(false));
  return {at::cat({hidden, ones}, 1), at::cat({head(), bias.unsqueeze(1)}, 1)};
}

}  // namespace gainlens::recommend
