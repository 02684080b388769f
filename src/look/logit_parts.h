#pragma once

#include "core/prompt_look.h"
#include "interventions/question.h"
#include "models/decoder/decoder.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::look {

/// Takes up what enters the stream at the last position of one pass, and attributes a logit difference to it.
/// The difference before the soft cap is d . n + constant, where n is the stream over the final norm's divisor, and the
/// stream is the sum of its parts. So each part has a share that follows from it alone, at the divisor of the whole
/// (direct logit attribution; Elhage et al. 2021, "A mathematical framework for transformer circuits").
class LogitPartsCollector {
 public:
  explicit LogitPartsCollector(models::Decoder& model) : model_(model) {}

  /// Hooks for the pass; the collector must outlive it.
  void attach(hooks::Hooks& hooks);

  /// @param difference  logit of answer less that of foil, as the pass gave it
  LogitParts finish(const interventions::AnswerPair& pair, double difference) const;

 private:
  struct LayerParts {
    at::Tensor attention, mlp;  ///< [width] float64: what is added to the stream
    at::Tensor heads;           ///< [head, width] float64, before a norm behind attention
    at::Tensor normalised;      ///< [width] float64, their sum behind that norm, before its weight
  };

  /// "" or why the sum is not the difference.
  std::string reason_for_a_miss(const LogitParts& found) const;
  static at::Tensor heads_behind_norm(const LayerParts& parts, bool centred);

  models::Decoder& model_;
  at::Tensor first_, last_;            ///< [width] float64: the stream before the first layer, and behind the last one
  at::ScalarType dtype_ = at::kFloat;  ///< of the stream
  std::vector<LayerParts> layers_;
};

}  // namespace gainlens::look
