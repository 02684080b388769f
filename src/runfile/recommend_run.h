#pragma once

#include "core/json.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

inline constexpr std::string_view recommend_run_format = "gainlens-recommend";
inline constexpr std::int64_t recommend_run_version = 1;

/// One arm trained with one seed, and evaluated.
struct TrainedSeed {
  std::map<std::string, std::vector<double>> curve;  ///< by metric, [epoch]: on the validation items, and the loss
  std::int64_t best_epoch = 0;                       ///< from 1; 0: an arm without training
  std::map<std::string, double> test;                ///< by metric, of the best epoch
  std::vector<float> rank;                           ///< [user] of the test item, at least 1
};

/// A recommender run: several arms, each with several seeds, on one data set. Docs: docs/run-file.md.
struct RecommendRun {
  Json request;  ///< what determines the numbers
  std::vector<std::string> arms;
  std::vector<std::int64_t> seeds;
  std::vector<std::string> users;                   ///< [user] names
  std::vector<std::int64_t> target;                 ///< [user] id of the test item
  std::vector<std::int64_t> history_length;         ///< [user] number of items known at the test
  std::vector<std::int64_t> training_length;        ///< [user] number of training items
  std::vector<std::int64_t> item_train_count;       ///< [item], of item i + 1
  std::vector<std::optional<TrainedSeed>> results;  ///< [arm, seed]; empty: not finished

  const std::optional<TrainedSeed>& result(std::size_t arm, std::size_t seed) const {
    return results.at(arm * seeds.size() + seed);
  }
};

/// Writes run.h5. The same arguments give the same bytes. After a failure the caller must remove what is at `path`.
/// @throws RunFailed      a write, a flush or a closing failed
/// @throws InternalError  sizes that do not fit each other
void write_recommend_run(const std::filesystem::path& path, const RecommendRun& run,
                         std::string_view program_version = {});

/// Whether the file, or run.h5 in the folder, says that it is a recommender run. False if it cannot be read.
bool is_recommend_run(const std::filesystem::path& path);

/// The file is untrusted: shapes, types and values are checked.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  missing, not HDF5, another format or version, datasets that are absent or do not fit each
///     other, values out of range
RecommendRun read_recommend_run(const std::filesystem::path& path);

}  // namespace gainlens::runfile
