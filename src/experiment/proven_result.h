#pragma once

#include "experiment/result.h"
#include "runfile/checksum_list.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::experiment {

/// Reads the result of a finished training, and proves it by its own checksum and the files beside it, such as the
/// weights, by those that it keeps. A training that keeps none has no checkpoint.
/// @param folder  of the training
/// @param label   Job::label()
/// @throws InvalidArgument  as load_result(); a file is missing or has changed. The message names it and says how to
///     repair it
StoredResult prove_result(const std::filesystem::path& folder, const std::string& label, std::uint64_t seed);

/// The same, for `check`: notes each file that is missing or has changed, and goes on.
/// @returns nothing: the result itself is missing or has changed
std::optional<StoredResult> examine_result(const std::filesystem::path& folder, const std::string& label,
                                           std::uint64_t seed, std::vector<runfile::FileFault>& faults);

/// Proves the files of a model that a training has left in a folder, before they are used: by the checksums that its
/// result keeps, or by files.sha256. A folder without either is accepted, and so is a file.
/// @throws InvalidArgument  a file is missing or has changed; the result or the list is broken
void prove_checkpoint_files(const std::filesystem::path& folder);

}  // namespace gainlens::experiment
