#include "analyses/paper_finetuning.h"

namespace gainlens::analyses {
namespace {

constexpr PaperAnswerScore scores[] = {
    {"squad", 0, "bft", .359, .029},  {"squad", 0, "focal", .309, .035},  {"squad", 0, "sft", .331, .034},
    {"squad", 10, "bft", .288, .017}, {"squad", 10, "focal", .290, .017}, {"squad", 10, "sft", .290, .026},
    {"squad", 20, "bft", .300, .030}, {"squad", 20, "focal", .299, .034}, {"squad", 20, "sft", .293, .029},
    {"squad", 30, "bft", .291, .024}, {"squad", 30, "focal", .293, .028}, {"squad", 30, "sft", .280, .018},
    {"squad", 40, "bft", .299, .026}, {"squad", 40, "focal", .293, .021}, {"squad", 40, "sft", .284, .018},
    {"nq", 5, "sft", .2321, .0409},   {"nq", 5, "bft", .2561, .0416},     {"nq", 10, "sft", .1511, .0264},
    {"nq", 10, "bft", .1624, .0231},  {"nq", 15, "sft", .0939, .0147},    {"nq", 15, "bft", .0980, .0217},
    {"nq", 20, "sft", .0716, .0111},  {"nq", 20, "bft", .0748, .0165},
};

}  // namespace

std::span<const PaperAnswerScore> paper_answer_scores() {
  return scores;
}

const PaperAnswerScore* find_paper_answer_score(std::string_view task, double condition, std::string_view arm) {
  for (const PaperAnswerScore& score : scores) {
    if (score.task == task && score.condition == condition && score.arm == arm) return &score;
  }
  return nullptr;
}

}  // namespace gainlens::analyses
