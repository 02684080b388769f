#pragma once

#include "analyses/attention_evidence.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "runfile/attention_run.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// What the report of a sweep of recommenders is about: one arm.
struct SweptArm {
  const analyses::AttentionReading* reading;
  const runfile::AttentionRun* run;

  std::string label() const { return reading->arm; }
};
using SweptArms = std::span<const SweptArm>;

/// Means of some numbers of each head by groups of users: a row of panels for each number (of each layer, if the heads
/// of all layers do not fit one row), a column for each head, arms laid over each other. A number that no arm has is
/// left out. Missing with more arms or panels than can be told apart, and where all users are in one group.
/// @param name     stem of its files
/// @param numbers  names of attention_numbers
Maybe<Figure> attention_figure(SweptArms arms, const std::string& name, analyses::UserGrouping grouping,
                               const std::vector<std::string_view>& numbers);

/// Writes the report of a sweep of recommenders into `out`: see write_files().
/// @param readings  at least one, of the arms of the run
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_attention_report(const runfile::AttentionRun& run,
                                     std::span<const analyses::AttentionReading> readings,
                                     const std::filesystem::path& out, const Writing& writing = {});

}  // namespace gainlens::reports
