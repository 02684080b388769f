#pragma once

#include "experiment/result.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace gainlens::experiment {

/// The file of a result, in the folder of its job.
inline constexpr const char* result_name = "result.safetensors";

/// Written atomically, as safetensors: float64 tensors "curve.METRIC" [epoch], "filter.NAME" [epoch * layer],
/// "test.METRIC" [1] and "score.NAME" [unit], and the metadata "arm", "seed", "best_epoch", "kept", "request" and
/// "sha256", the checksum of all the others. The score "rank" of recommenders is the
/// float32 tensor "rank", as every version wrote it.
/// @param label  Job::label(), the metadata "arm"
/// @throws RunFailed  the disk is full
void save_result(const std::filesystem::path& file, const std::string& label, std::uint64_t seed,
                 const StoredResult& stored);
/// @throws InvalidArgument  missing or broken; differs from its checksum; of another arm, variant or seed
StoredResult load_result(const std::filesystem::path& file, const std::string& label, std::uint64_t seed);
/// The same, of whatever job.
StoredResult load_result(const std::filesystem::path& file);

}  // namespace gainlens::experiment
