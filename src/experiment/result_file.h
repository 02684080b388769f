#pragma once

#include "core/json.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace gainlens::experiment {

/// What is known of a job that has been done: curves, metrics, and the scores of every unit, whatever the units are.
/// The file of every run holds these, so the type is its.
using Result = runfile::TrainedSeed;

/// A result with what proves the files beside it.
struct StoredResult {
  Result result;
  /// The sha256 of the files of the checkpoint, by name; null where there is no checkpoint, and in what earlier
  /// versions wrote.
  Json kept = Json(Json::value_t::null);
  /// training::request_identity() of the job's request; empty in what earlier versions wrote.
  std::string request;
  bool has_checksum = false;  ///< the file that it was read from has one of its own; earlier versions wrote none
};

/// Whether so many epochs, or the patience, end a training with this result. A result of fewer epochs is that of a
/// training that goes on.
bool is_finished(const Result& result, std::int64_t epochs, std::int64_t patience);

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
