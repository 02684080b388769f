#pragma once

#include "core/json.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gainlens::recommend {

inline constexpr const char* seed_result_name = "result.safetensors";

/// What is kept of a finished training besides the checkpoint.
struct SeedResult {
  std::map<std::string, std::vector<double>> curve;   ///< by metric, [epoch]: "training_loss" and validation metrics
  std::map<std::string, std::vector<double>> filter;  ///< runfile::filter_curves(), [epoch, layer]; empty: no filter
  std::int64_t best_epoch = 0;                        ///< from 1; 0 for baselines
  std::map<std::string, double> test;                 ///< by metric, of the best epoch
  std::vector<float> rank;                            ///< [user], on the test items
  /// The sha256 of the files of the checkpoint, by name; null for baselines, and in what earlier versions wrote.
  Json kept = Json(Json::value_t::null);
  /// training::request_identity() of arm, seed and settings; empty in what earlier versions wrote.
  std::string request;
  bool has_checksum = false;  ///< the file that it was read from has one of its own; earlier versions wrote none
};

/// Whether so many epochs, or the patience, end a training with this result. A result of fewer epochs is that of a
/// training that goes on.
bool is_finished(const SeedResult& result, std::int64_t epochs, std::int64_t patience);

/// Written atomically, as safetensors: float64 tensors "curve.METRIC" [epoch], "filter.NAME" [epoch * layer] and
/// "test.METRIC" [1], float32 "rank" [user], and the metadata "arm", "seed", "best_epoch", "kept", "request" and
/// "sha256", the checksum of all the others.
/// @throws RunFailed  the disk is full
void save_seed_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed,
                      const SeedResult& result);
/// @throws InvalidArgument  missing or broken; differs from its checksum; of another arm or seed
SeedResult load_seed_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed);
/// The same, of whatever arm and seed.
SeedResult load_seed_result(const std::filesystem::path& file);

}  // namespace gainlens::recommend
