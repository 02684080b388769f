#pragma once

#include "analyses/options.h"
#include "cli/global_options.h"
#include "reports/made_report.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

// What the reports of all kinds of runs share.

namespace gainlens::cli {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  std::vector<std::string> names;
  std::optional<std::string> at;
  std::optional<std::int64_t> deep_layers;
  double theory_margin = analyses::Options{}.theory_margin;
  std::optional<std::string> lengths;
  std::string style;
  std::string axis;
  /// Of a sweep without a value: the option alone asks for a page. Of a recommender run the name of a data set.
  std::optional<std::string> paper;
};

/// The folder of a run, given as the folder or as its run.h5.
std::filesystem::path folder_of_run(const std::string& run);
/// The folder that the report is written to.
/// @throws InvalidArgument  it is that of a run; several runs, and --out is missing
std::filesystem::path folder_to_write(const ReportArguments& arguments);
reports::Writing writing_of(const ReportArguments& arguments);
/// Says what was written, and ends with an error if a section is missing.
/// @throws RunFailed  as check_made()
void finish_report(const reports::WrittenReport& written, const std::filesystem::path& out, bool json);

}  // namespace gainlens::cli
