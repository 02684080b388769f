#pragma once

#include "reports/made_report.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens::cli {

/// Refuses, before hours of work, a folder for the report of a measuring command that holds a run, because a report
/// replaces what lies in its folder, and one that cannot be written.
/// @param run  the folder of the run; may be empty
void check_report_folder(const std::string& report, const std::string& run);
/// Says which figures were left out.
void tell_left_out(const reports::WrittenReport& written);
/// @throws RunFailed  a section could not be made; the others are written
void check_made(const reports::WrittenReport& written, std::string_view command);
/// Both, and between them where the page is, all on stderr.
/// @throws RunFailed  as check_made()
void tell_written(const reports::WrittenReport& written, const std::filesystem::path& out, std::string_view command);

}  // namespace gainlens::cli
