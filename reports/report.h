#pragma once

#include "analyses/options.h"
#include "reports/results.h"
#include "runfile/run_reader.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// What a report consists of.
struct WrittenReport {
  std::vector<std::filesystem::path> files;  ///< relative to the report's folder, sorted
  std::vector<std::string> left_out;         ///< "<figure>: <reason>" of every figure that could not be drawn
};

/// Writes every figure (SVG, PDF, PNG), tables/*.csv, tables/*.tex, summary.json and report.html of a sweep into `out`,
/// which is created; of several sweeps with the figures overlaid, their differences tabulated, and the CSV files of run
/// N (from 1) in tables/run-N/. The same runs give the same bytes. Everything is made in a temporary folder inside
/// `out` first: after an error `out` holds what it held before. Figures and tables of an earlier report that this one
/// does not have are removed.
/// @param runs  at least one, at most `most_runs`, their labels all different
/// @throws InvalidArgument  see analyses::sink_lengths(), deep_layers(), usable_lengths() and compare(); `out` cannot
/// be written to; too many runs, or two of one label
/// @throws RunFailed        gnuplot or rsvg-convert is missing or fails; the disk is full
WrittenReport write_report(std::span<const RunInput> runs, const std::filesystem::path& out,
                           const analyses::Options& options = {});
WrittenReport write_report(const runfile::RunReader& reader, const std::filesystem::path& out,
                           const analyses::Options& options = {});

}  // namespace gainlens::reports
