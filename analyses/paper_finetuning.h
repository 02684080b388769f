#pragma once

#include <span>
#include <string_view>

namespace gainlens::analyses {

/// F1 of an arm in the paper's fine-tuning of TinyLlama-1.1B: mean and standard deviation over 20 seeds.
struct PaperAnswerScore {
  std::string_view task;  ///< "squad", or "nq"
  int condition;          ///< percent of corrupted answer words; number of passages of nq
  std::string_view arm;   ///< "bft", "focal", "sft"
  double f1;
  double deviation;
};

/// Source: bft.tex, Tables squad-detail and nq-detail.
std::span<const PaperAnswerScore> paper_answer_scores();

/// Null if the paper has no such number.
const PaperAnswerScore* find_paper_answer_score(std::string_view task, double condition, std::string_view arm);

}  // namespace gainlens::analyses
