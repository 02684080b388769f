#include "analyses/paper_knobs.h"

#include <algorithm>

namespace gainlens::analyses {
namespace {

constexpr std::string_view no_effect = "zero measurable effect across an order of magnitude";

constexpr PaperKnob knobs[] = {
    {"initial_gain", "K0", "{/:Italic K}_0", false, no_effect},
    {"most_process_noise", "Q_max", "{/:Italic Q}_{max}", false, no_effect},
    {"prior_variance", "sigma0^2", "σ@_0^2", false, no_effect},
    {"initial_decay", "rho0", "ρ_0", false, no_effect},
    {"warm_up", "warm-up", "warm-up", true, "a cliff: 0 steps lose about 1%, and 200 or more lose too"},
    {"precision_learning_rate", "precision LR", "precision LR", true, "a U with its optimum at 100"},
    {"most_precision", "lambda_max", "λ_{max}", true, "10 is too tight; 50 or more are about equal to 100"},
};

}  // namespace

std::span<const PaperKnob> paper_knobs() {
  return knobs;
}

const PaperKnob* find_paper_knob(std::string_view key) {
  const auto* const found = std::ranges::find(knobs, key, &PaperKnob::key);
  return found == std::end(knobs) ? nullptr : found;
}

}  // namespace gainlens::analyses
