#pragma once

#include "experiment/result.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace gainlens::experiment {

/// Reads the result of a finished training, and proves it by its own checksum and the files beside it, such as the
/// weights, by those that it keeps. A training that keeps none has no checkpoint.
/// @param folder  of the training
/// @param label   Job::label()
/// @throws InvalidArgument  as load_result(); a file is missing or has changed. The message names it and says how to
///     repair it
StoredResult prove_result(const std::filesystem::path& folder, const std::string& label, std::uint64_t seed);

}  // namespace gainlens::experiment
