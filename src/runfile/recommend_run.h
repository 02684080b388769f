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
  /// By name (curve_names()), [epoch]: the training loss, and metrics on the validation items. All have the same number
  /// of epochs. Empty for an arm without training.
  std::map<std::string, std::vector<double>> curve;
  /// By name (filter_curve_names()), [epoch, layer]: what the precisions of an arm with a filter did. NaN while the
  /// filter warms up. Empty for other arms.
  std::map<std::string, std::vector<double>> filter;
  std::int64_t best_epoch = 0;         ///< from 1; 0: an arm without training
  std::map<std::string, double> test;  ///< by name of every ranking_metrics(), of the best epoch: means over `rank`
  std::vector<float> rank;             ///< [user] of the test item, at least 1; a half where items share ranks
};

/// A recommender run: several arms, each with several seeds, on one data set. Docs: docs/run-file.md.
struct RecommendRun {
  /// What determines the numbers. It has at least "backbone", "training", and "data" with "name", "format", "split" (a
  /// checksum), "users", "items" and "interactions".
  Json request = Json::object();
  std::vector<std::string> arms;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> users;                   ///< [user] names
  std::vector<std::int64_t> target;                 ///< [user] id of the test item, from 1
  std::vector<std::int64_t> history_length;         ///< [user] number of items known at the test
  std::vector<std::int64_t> training_length;        ///< [user] number of training items
  std::vector<std::int64_t> item_train_count;       ///< [item], of the item with the id of its place + 1
  std::vector<std::optional<TrainedSeed>> results;  ///< [arm, seed]; empty: not finished

  const std::optional<TrainedSeed>& result(std::size_t arm, std::size_t seed) const {
    return results.at(arm * seeds.size() + seed);
  }
  std::string data_name() const { return request.at("data").at("name"); }
  std::string split() const { return request.at("data").at("split"); }
  std::string backbone() const { return request.at("backbone"); }
};

/// Names that a learning curve can have: "training_loss", and those of ranking_metrics().
std::vector<std::string> curve_names();

/// Number of epochs of a training; 0 for an arm without one.
std::int64_t epochs_of(const TrainedSeed& seed);
/// The metrics on the validation items, and the loss, of the best epoch; empty for an arm without training.
std::map<std::string, double> validation_of(const TrainedSeed& seed);

/// Why the training has diverged (core/divergence.h); empty if it has not, or if the run holds no losses.
/// @param items  of the catalogue
std::string divergence_of(const TrainedSeed& seed, std::int64_t items);

/// What is known of the filter in each layer after each epoch: a name and what it means.
struct FilterCurve {
  std::string_view name, meaning;
};
const std::vector<FilterCurve>& filter_curves();

/// Writes run.h5 completely or not at all. The same arguments give the same bytes.
/// @throws RunFailed      a write, a flush or a closing failed
/// @throws InternalError  sizes that do not fit each other, names of unknown metrics
void write_recommend_run(const std::filesystem::path& path, const RecommendRun& run,
                         std::string_view program_version = {});

/// Whether the path is a recommender run, finished or not: request.json says so, or run.h5 if there is none or it is
/// broken. False if neither can be read.
/// @param path  a run folder or a run.h5
bool is_recommend_run(const std::filesystem::path& path);
/// For readers of sweeps.
/// @throws InvalidArgument  it is a recommender run; the message names the commands that read it
void refuse_recommend_run(const std::filesystem::path& path);

/// The file is untrusted: it is compared with `run.h5.sha256` beside it, where there is one; shapes, types and values
/// are checked. Unknown groups and datasets are not read.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  missing, not HDF5, another format or version, datasets that are absent or do not fit each
///     other, values out of range, metrics that are not those of the ranks
RecommendRun read_recommend_run(const std::filesystem::path& path);

}  // namespace gainlens::runfile
