#pragma once

#include "reports/made_report.h"

#include <filesystem>
#include <string_view>

namespace gainlens::cli {

/// Says which figures were left out, and where the page is.
/// @throws RunFailed  a section could not be made; the others are written
void tell_written(const reports::WrittenReport& written, const std::filesystem::path& out, std::string_view command);

}  // namespace gainlens::cli
