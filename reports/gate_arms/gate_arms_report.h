#pragma once

#include "analyses/gate_arm_effects.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "reports/words/facts.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::reports {

/// What the report of `gainlens gate-arms` is about.
struct ReadGateArms {
  const analyses::GateArmEffects* effects;
  std::string of;  ///< what was measured, as print_gate_arms() takes it

  std::string label() const { return effects->judged; }
};

/// Whether an arm leaves the gates near their scale, as all do but `raw` and `one`.
bool keeps_scale(const analyses::GateArmEffect& effect);

/// The change of the loss against the context, of each arm, with intervals and a line at the trained length. Arms that
/// do not keep the gate's scale have a panel of their own. Missing with one context.
Maybe<Figure> gate_arms_figure(const analyses::GateArmEffects& effects);

/// Writes the report of a run of gate-arms into `out`: see write_files().
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_gate_arms_report(const analyses::GateArmEffects& effects, const std::string& of,
                                     const std::filesystem::path& out, const Writing& writing = {});

/// What was measured, and how gates were calibrated.
/// @param of  what was measured
std::vector<Fact> gate_arms_facts(const analyses::GateArmEffects& effects, const std::string& of);

/// "prediction 3 (gain in the place of the gate): supported"
std::string gate_arms_ruling(const analyses::GateArmEffects& effects);

/// The result of `gainlens gate-arms`. @param of  what was measured
std::string print_gate_arms(const analyses::GateArmEffects& effects, const std::string& of);

}  // namespace gainlens::reports
