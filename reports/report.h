#pragma once

#include "analyses/options.h"
#include "runfile/run_reader.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::reports {

/// What a report consists of.
struct WrittenReport {
  std::vector<std::filesystem::path> files;  ///< relative to the report's folder, sorted
  std::vector<std::string> left_out;         ///< "<figure>: <reason>" of every figure that could not be drawn
};

/// Writes every figure (SVG, PDF, PNG), tables/*.csv, summary.json and report.html of a sweep into `out`, which is created. The same run
/// gives the same bytes. Everything is made in a temporary folder inside `out` first: after an error `out` holds what it held before.
/// Figures of an earlier report that this one does not have are removed.
/// @throws InvalidArgument  see analyses::sink_lengths(), deep_layers() and usable_lengths(); `out` cannot be written to
/// @throws RunFailed        gnuplot or rsvg-convert is missing or fails; the disk is full
WrittenReport write_report(const runfile::RunReader& reader, const std::filesystem::path& out, const analyses::Options& options = {});

}  // namespace gainlens::reports
