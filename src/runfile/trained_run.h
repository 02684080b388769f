#pragma once

#include "core/json.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// One arm trained with one seed, and evaluated.
struct TrainedSeed {
  /// By name, [epoch]: the training loss, and metrics of the validation. All have the same number of epochs. Empty for
  /// an arm without training.
  std::map<std::string, std::vector<double>> curve;
  /// By name (filter_curves()), [epoch, layer]: what the precisions of an arm with a filter did. NaN while the filter
  /// warms up. Empty for other arms.
  std::map<std::string, std::vector<double>> filter;
  std::int64_t best_epoch = 0;         ///< from 1; 0: an arm without training
  std::map<std::string, double> test;  ///< by name: the metrics of the best epoch
  /// By name, [unit]: what each unit got in the evaluation that `test` sums up. Of a recommender: "rank", the rank of
  /// the user's test item.
  std::map<std::string, std::vector<double>> scores;
};

/// What the run of every experiment holds, whatever its units are: arms, each with several seeds, all evaluated on the
/// same units.
struct TrainedRun {
  /// What determines the numbers. It has at least "data" with the texts "name" and "split", the checksum of what the
  /// units are and how they are split.
  Json request = Json::object();
  std::vector<std::string> arms;  ///< "ARM", or "ARM/VARIANT"
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> units;                   ///< [unit] names
  std::vector<std::optional<TrainedSeed>> results;  ///< [arm, seed]; empty: not finished

  const std::optional<TrainedSeed>& result(std::size_t arm, std::size_t seed) const {
    return results.at(arm * seeds.size() + seed);
  }
  std::string data_name() const { return request.at("data").at("name"); }
  std::string split() const { return request.at("data").at("split"); }
};

/// The parts of an entry of TrainedRun::arms: "bft" and "wide" of "bft/wide"; an arm alone has an empty variant.
std::string arm_of(const std::string& label);
std::string variant_of(const std::string& label);

/// The name of the curve of the training loss.
inline constexpr const char* training_loss = "training_loss";
/// That of the gamma that focal loss learns, after each epoch.
inline constexpr const char* gamma_curve = "gamma";

/// Number of epochs of a training; 0 for an arm without one.
std::int64_t epochs_of(const TrainedSeed& seed);
/// The metrics of the validation, and the loss, of the best epoch; empty for an arm without training.
std::map<std::string, double> validation_of(const TrainedSeed& seed);

/// What is known of the filter in each layer after each epoch: a name and what it means.
struct FilterCurve {
  std::string_view name, meaning;
  bool came_later = false;  ///< files of the first versions do not have it
};
const std::vector<FilterCurve>& filter_curves();
/// Gives the curves of a filter that a file of an earlier version lacks: NaN at every point. Without a filter nothing
/// is done.
void complete_filter(std::map<std::string, std::vector<double>>& filter);

/// Puts a finished run.h5 into its place, with its checksum beside it. A file without a checksum is read and one that
/// differs is not, so the old checksum goes first.
/// @param write  writes the file to the path that it is given
/// @throws RunFailed  the disk is full
void publish_run_file(const std::filesystem::path& folder,
                      const std::function<void(const std::filesystem::path& file)>& write);

}  // namespace gainlens::runfile
