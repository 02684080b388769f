#pragma once

#include "reports/made_report.h"
#include "runfile/intervention_run.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens::cli {

/// Whether the folder is a run of `gainlens intervene`, on a text or on two prompts, finished or not.
bool is_run_of_intervene(const std::filesystem::path& path);

/// For commands that read other runs.
/// @throws InvalidArgument  it is a run of `gainlens intervene`; the message says what reads it
void refuse_run_of_intervene(const std::filesystem::path& path, std::string_view command);

/// What the losses of a run on a text are of: '8 documents of 512 tokens', or the last tokens of these.
/// @throws InvalidArgument  the stored request does not say it
std::string measured_tokens(const runfile::InterventionRun& run, const std::filesystem::path& path);

/// Writes the report of such a run.
/// @throws InvalidArgument  it is not finished or damaged; as write_files()
reports::WrittenReport report_run_of_intervene(const std::filesystem::path& path, const std::filesystem::path& out,
                                               const reports::Writing& writing);

}  // namespace gainlens::cli
