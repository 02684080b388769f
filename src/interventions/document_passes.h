#pragma once

#include "core/intervention_effect.h"
#include "hooks/hooked_model.h"
#include "interventions/arm.h"
#include "interventions/question.h"
#include "models/decoder/decoder.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// The passes of one document: that of the model as it is, and those with an arm. A pass with an arm starts at the
/// arm's layer from the stored stream of the first one, so that the layers before it run once for all arms. Memory
/// grows with the number of tokens.
class DocumentPasses {
 public:
  /// Runs the model as it is.
  /// @param tokens   at least 2
  /// @param starts   Arm::start() of the arms that will be run
  /// @param options  without a stop and without an operation
  /// @param question  which losses are read; if none is, nll is 0 everywhere
  DocumentPasses(models::Decoder& model, std::vector<std::int32_t> tokens, const std::set<std::int64_t>& starts,
                 const hooks::ForwardOptions& options, Question question = {});

  /// Mean negative log likelihood of the tokens that Question::targets asks for, in nats.
  double native_nll() const { return native_nll_; }
  /// The answer of the model as it is, if something is asked.
  std::optional<double> native_answer() const { return native_answer_; }

  /// Runs arms with the same start, each alone.
  /// An arm that changes nothing at its site, or no logit, has the loss of the model as it is, and no largest change.
  /// @throws InvalidArgument  it does so, and Arm::may_do_nothing is not set; several writes cancel each other
  /// @throws RunFailed        something changed before the arm's first position; as forward() and read_streams()
  std::vector<InterventionEffect> run(const std::vector<const Arm*>& arms, const SiteValues& means,
                                      const SiteValues& donor);

 private:
  std::vector<InterventionEffect> run_batch(std::span<const Arm* const> arms, const SiteValues& means,
                                            const SiteValues& donor);
  std::vector<hooks::Stream> continued(std::int64_t start, const std::vector<hooks::Hooks>& all);
  const at::Tensor& base_of(const Arm& arm);

  models::Decoder& model_;
  std::vector<std::int32_t> ids_;
  hooks::Tokens tokens_;
  hooks::ForwardOptions options_;
  at::Tensor native_;                          // after the final norm
  std::map<std::int64_t, at::Tensor> before_;  // the stream before the layers of `starts`
  Question question_;
  double native_nll_ = 0;
  std::optional<double> native_answer_;
  std::map<std::string, at::Tensor> bases_;  // of passes whose sites are replaced by themselves
};

}  // namespace gainlens::interventions
