#pragma once

#include "analyses/gain_by_condition.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <filesystem>
#include <span>
#include <string>

namespace gainlens::reports {

/// What the report of `gainlens gain-by` is about: one candidate.
struct CandidateGains {
  const analyses::GainByCondition* gains;
  std::string axis;  ///< what the condition is: "share of replaced items"

  const std::string& label() const { return gains->candidate; }
};

/// The relative change of each metric against the condition, with its interval: a panel for each metric, candidates
/// laid over each other, a little aside. Missing with more candidates than can be told apart, or without any change.
/// @param candidates  at least one, with the same metrics
Maybe<Figure> gain_by_figure(std::span<const CandidateGains> candidates);

/// A table for a terminal.
std::string print_gain_by(std::span<const CandidateGains> candidates);

/// Writes the report of `gainlens gain-by` into `out`: see write_files().
WrittenReport write_gain_by_report(std::span<const CandidateGains> candidates, const std::filesystem::path& out);

}  // namespace gainlens::reports
