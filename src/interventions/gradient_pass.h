#pragma once

#include "interventions/arm.h"
#include "interventions/question.h"
#include "models/decoder/decoder.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// What an arm would change if the output were linear.
struct Estimate {
  double change = 0;
  double rounding = 0;  ///< what rounding of the values alone may make of it

  /// Whether the arm is seen to do something.
  bool acts() const { return std::abs(change) > rounding; }
};

/// One forward and one backward pass of a document: what stands at sites, and the slope of the output in it. By it all
/// interventions are estimated at once (attribution patching): the sum of slope x (new value - old value) over what is
/// written. Memory grows with the number of tokens; it holds the stream of every layer, and the weights twice.
class GradientPass {
 public:
  /// @param sites     names
  /// @param question  with a pair: the difference of two logits at the last position; else: the mean loss in nats
  /// @throws InvalidArgument  the model has a filter, whose Jacobian is computed without gradients
  /// @throws InvalidArgument, RunFailed  as forward(); a NaN or infinite slope
  GradientPass(models::Decoder& model, const std::vector<std::int32_t>& tokens, const std::set<std::string>& sites,
               const hooks::ForwardOptions& options, const Question& question);

  /// The number whose slope is taken.
  double value() const { return value_; }
  Estimate estimate(const Arm& arm, const SiteValues& means, const SiteValues& donor) const;

 private:
  double value_ = 0;
  SiteValues values_, slopes_;
};

/// The exact changes of arms, each alone, of the same number as GradientPass::value().
std::vector<double> exact_changes(models::Decoder& model, const std::vector<std::int32_t>& tokens,
                                  const std::vector<const Arm*>& arms, const SiteValues& means, const SiteValues& donor,
                                  const hooks::ForwardOptions& options, const Question& question);

/// @throws InvalidArgument  a backward pass needs all weights at once
void check_can_approximate(bool stream_weights);

/// So many interventions of each kind are measured exactly beside the estimates.
inline constexpr std::size_t exact_ones = 20;

/// Places of interventions that are measured exactly beside the estimates, in ascending order: of each kind
/// `exact_ones` of those that act, or all of them, drawn by the seed.
/// @param kinds, acts  [intervention], as Attribution has them
std::vector<std::size_t> drawn_places(const std::vector<std::string>& kinds, const std::vector<bool>& acts,
                                      std::uint64_t seed);

}  // namespace gainlens::interventions
