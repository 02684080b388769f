#pragma once

#include "analyses/checks/training_checks.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::cli {

/// Notes what the files of trainings say.
/// @param proof  returns what could not be proven, and throws what speaks against them
void note_files(analyses::CheckedTrainings& checked, const std::function<std::string()>& proof);

/// The checks of one training of recommenders. Nothing: the path is no folder ARM/seed-N of such a run.
std::optional<std::vector<analyses::CheckResult>> check_training_alone(const std::filesystem::path& path);

}  // namespace gainlens::cli
