#pragma once

#include "analyses/equivalence.h"
#include "analyses/measured.h"
#include "analyses/table.h"
#include "core/json.h"
#include "runfile/gate_arms_run.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What arms in the gates' place did: docs/analyses/prediction-3.md.

namespace gainlens::analyses {

/// A paired difference over documents, which are taken as independent.
struct ArmDifference {
  double mean;               ///< in nats per token; above 0: worse
  Maybe<Interval> interval;  ///< 95%, Student
  Measured p;                ///< two-sided Student p of a mean of 0
  /// The difference that as many documents with this deviation show with the declared power, at 5% two-sided.
  Measured detectable;
  Measured skewness;  ///< of the differences of documents: beyond `max_skewness` nothing is ruled from them
};

/// An arm in one context, means over documents.
struct ArmInContext {
  std::int64_t tokens;
  double nll;
  double gate_mean, bos_mass, n_eff;       ///< runfile::GateArmReading
  std::optional<ArmDifference> to_native;  ///< none of native itself
};

/// The slope of a difference from native on ln T: by how much it grows where the context is e times as long.
struct ContextSlope {
  double value;
  Maybe<Interval> interval;  ///< 95% percentile interval over resampled documents
  Measured skewness;         ///< of the slopes of documents
};

struct GateArmEffect {
  std::string arm;
  std::vector<ArmInContext> contexts;
  /// Of the difference from native at the trained length, with the declared margin; none of native itself.
  std::optional<Equivalence> at_trained;
  std::optional<Maybe<ContextSlope>> slope;  ///< none of native itself
};

/// The judged arm against another one, at the longest context.
struct GateArmComparison {
  std::string against;
  ArmDifference difference;  ///< judged arm minus the other
  Measured adjusted_p;       ///< Holm's, over all comparisons
  bool better() const;       ///< the mean is below 0, and adjusted_p is at most 5%
  bool worse() const;
};

enum class PredictionRuling { supported, contradicted, not_shown, not_judged };

/// How gates were calibrated.
struct CalibrationSummary {
  std::size_t heads;
  std::vector<runfile::CalibratedHead> unsolved;  ///< heads that keep their gate, because no lambda has its mean
  std::optional<Interval> lambda;                 ///< smallest and largest
  std::optional<double> lambda_median;
  std::optional<double> largest_miss;  ///< of a mean of K' from that of the gate
  double gate_mean, raw_mean;          ///< over heads; the gate is 1 where the model has none
};

struct GateArmEffects {
  std::size_t documents;
  std::int64_t trained_length;
  std::vector<GateArmEffect> arms;  ///< native first
  std::string judged;               ///< the arm of the prediction: "gain", or "modulated" where there is no gate
  std::vector<GateArmComparison> comparisons;
  PredictionRuling ruling;
  std::vector<std::string> reasons;  ///< what holds and what does not, one sentence each
  CalibrationSummary calibration;
};

/// @param seed  of the resampled documents
GateArmEffects gate_arm_effects(const runfile::GateArmsRun& run, std::uint64_t seed);

/// "supported", "contradicted", "not shown", "not judged"
std::string_view in_words(PredictionRuling ruling);

/// Each arm in each context.
Table contexts_of(const GateArmEffects& effects);
/// Each arm but native at the trained length, and its slope.
Table rulings_of(const GateArmEffects& effects);
/// The judged arm against others, at the longest context.
Table comparisons_of(const GateArmEffects& effects);

OrderedJson to_json(const GateArmEffects& effects);

}  // namespace gainlens::analyses
