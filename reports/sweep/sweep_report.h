#pragma once

#include "analyses/options.h"
#include "reports/made_report.h"
#include "reports/sweep/sweep_run.h"

#include <filesystem>
#include <span>

namespace gainlens::reports {

/// Writes the report of a sweep, or of several with the figures overlaid and their differences tabulated, into `out`:
/// see write_files(). The same runs give the same bytes. A section that fails is named in the result; the others are
/// written.
/// @param runs  at least one, at most `max_runs`, their labels all different
/// @throws InvalidArgument  see analyses::sink_lengths(), deep_layers(), usable_lengths() and compare(); `out` cannot
///     be written to; too many runs, two of one label, one run given twice
/// @throws RunFailed        see write_files()
WrittenReport write_report(std::span<const RunInput> runs, const std::filesystem::path& out,
                           const analyses::Options& options = {}, const Writing& writing = {});
WrittenReport write_report(const runfile::RunReader& reader, const std::filesystem::path& out,
                           const analyses::Options& options = {}, const Writing& writing = {});

/// The runs as sections see them. The readers must outlive them.
/// @throws InvalidArgument  too many runs, two of one label, one run given twice
std::vector<SweepRun> overlay(std::span<const RunInput> runs, const analyses::Options& options);

}  // namespace gainlens::reports
