#pragma once

#include "analyses/measured.h"
#include "analyses/statistics.h"
#include "core/json.h"
#include "runfile/intervention_run.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A mean over documents, such as the difference of two logits at their last position, and its change.
struct ChangedMean {
  double value;
  double delta;              ///< value minus that of the model as it is
  Maybe<Interval> interval;  ///< of the delta, as that of the loss
};

/// What one intervention did, over all documents.
struct ArmEffect {
  std::string intervention;
  double nll;    ///< mean over documents, in nats per token
  double delta;  ///< nll minus that of the model as it is
  /// Of the delta, from the paired differences of documents, which are taken as independent. Missing: fewer than two
  /// documents, or the same difference in each.
  Maybe<Interval> interval;
  double site_norm_before;        ///< mean over documents
  double site_norm_after;         ///< mean over documents
  double largest_logit_change;    ///< over all documents
  std::size_t documents_changed;  ///< in the others no logit changed, and the difference is exactly 0

  std::optional<ChangedMean> answer = {};  ///< the logit difference, where --answer and --foil were given

  bool changes_nothing() const { return documents_changed == 0; }
  /// What tables and maps show: the logit difference if it is there, else the loss.
  ChangedMean shown() const { return answer ? *answer : ChangedMean{nll, delta, interval}; }
};

/// An intervention with its control: the same with random other heads of the layer.
struct ControlledArm {
  ArmEffect arm;
  std::optional<ArmEffect> control;
  std::string no_control;  ///< why there is none
};

struct InterventionEffects {
  std::size_t documents;
  double native_nll;  ///< mean over documents
  std::vector<ControlledArm> arms;
  std::optional<double> native_answer = {};  ///< mean over documents
  std::string answer = {}, foil = {};        ///< the two tokens, as people read them
};

InterventionEffects intervention_effects(const runfile::InterventionRun& run);

/// {"native": {"nll": x}, "arms": [{"intervention": .., "nll": .., "delta": .., ..}], ..}
OrderedJson to_json(const InterventionEffects& effects);

}  // namespace gainlens::analyses
