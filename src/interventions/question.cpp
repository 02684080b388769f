#include "interventions/question.h"

#include "core/check.h"

#include <ATen/ATen.h>

namespace gainlens::interventions {

double answer_to(const Question& question, const at::Tensor& logits) {
  ASSERT(question.any(), "nothing is asked");
  if (question.pair) return logits[question.pair->answer].item<double>() - logits[question.pair->foil].item<double>();
  const at::Tensor& log_p = question.reference;
  return (log_p.exp() * (log_p - log_probabilities(logits))).sum().item<double>();
}

at::Tensor log_probabilities(const at::Tensor& logits) {
  return logits.to(at::kDouble).log_softmax(-1);
}

}  // namespace gainlens::interventions
