#pragma once

#include "analyses/checks/training_checks.h"
#include "reports/made_report.h"

#include <filesystem>
#include <string>

namespace gainlens::reports {

/// Writes the report of the training of a language model into `out`: see write_files(). Its loss curve, the losses of
/// each evaluation, and what `gainlens check` finds.
/// @param name  of its folder; untrusted
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_language_report(const analyses::LanguageTraining& training, const std::string& name,
                                    const std::filesystem::path& out, const Writing& writing);

}  // namespace gainlens::reports
