#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// What is kept of a finished training besides the checkpoint.
struct SeedResult {
  std::map<std::string, std::vector<double>> curve;   ///< by metric, [epoch]: "training_loss" and validation metrics
  std::map<std::string, std::vector<double>> filter;  ///< runfile::filter_curves(), [epoch, layer]; empty: no filter
  std::int64_t best_epoch = 0;                        ///< from 1; 0 for baselines
  std::map<std::string, double> test;                 ///< by metric, of the best epoch
  std::vector<float> rank;                            ///< [user], on the test items
};

/// Written atomically, as safetensors: float64 tensors "curve.METRIC" [epoch], "filter.NAME" [epoch * layer] and
/// "test.METRIC" [1], float32 "rank" [user], and the metadata "arm", "seed" and
/// "best_epoch".
/// @throws RunFailed  the disk is full
void save_seed_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed,
                      const SeedResult& result);
/// @throws InvalidArgument  missing or broken; of another arm or seed
SeedResult load_seed_result(const std::filesystem::path& file, const std::string& arm, std::uint64_t seed);

}  // namespace gainlens::recommend
