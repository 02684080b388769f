#pragma once

#include "analyses/measured.h"
#include "core/attribution.h"
#include "core/json.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// One estimated intervention.
struct EstimatedArm {
  std::string intervention;
  std::string kind;
  bool acts;                    ///< whether the estimate is more than rounding
  double estimate;              ///< of the change, mean over documents
  Maybe<Interval> interval;     ///< of the estimate over documents
  std::optional<double> exact;  ///< the change itself, where it was measured: mean over documents
};

/// How far the estimates of one kind of intervention can be trusted.
struct EstimatedKind {
  std::string kind;        ///< "attn.hook_z=zero"
  std::size_t arms = 0;    ///< of this kind
  std::size_t acting = 0;  ///< of these, those that the exact ones are drawn from
  std::size_t exact = 0;   ///< how many were measured exactly
  Measured correlation = Measured::none("nothing was measured");  ///< Spearman, of estimates and exact changes of those
  /// 95%, of the correlation of all that can act, over the draw of the exact ones: Fisher's z with the larger of two
  /// errors, that of Bonett and Wright 2000 and the jackknife's, less what a sample without replacement knows of all.
  Maybe<Interval> interval = Maybe<Interval>::none("nothing was measured");
};

/// Estimates of attribution patching.
struct Attributions {
  std::size_t documents;
  double native;                     ///< the number that changes, mean over documents
  std::optional<double> other;       ///< of two prompts: that number in the run that values come from
  std::vector<EstimatedKind> kinds;  ///< in the order of the arms
  std::vector<EstimatedArm> arms;

  /// A change as share of the way to the other run. Missing: there is none, or both runs have the same number.
  Measured normalised(double change) const;
};

Attributions attributions(const Attribution& attribution);

/// The places of the arms, the largest estimate first.
std::vector<std::size_t> by_size(const Attributions& attributions);

/// {"native": x, "other": y, "kinds": [{"kind": .., "rank_correlation": r, ..}, ..], "arms": [{"intervention": ..,
/// "estimate": .., "normalised": .., "exact": ..}, ..]}. "other" and "normalised" are of two prompts.
OrderedJson to_json(const Attributions& attributions);

}  // namespace gainlens::analyses
