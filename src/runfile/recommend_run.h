#pragma once

#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

inline constexpr std::string_view recommend_run_format = "gainlens-recommend";
inline constexpr std::int64_t recommend_run_version = 1;

/// The score of a user: the rank of the test item among all items, at least 1; a half where items share ranks.
inline constexpr const char* rank_score = "rank";
/// Likewise of the validation item, by the same model. Results of earlier versions lack it.
inline constexpr const char* validation_rank_score = "validation_rank";
inline const std::vector<double>& ranks_of(const TrainedSeed& seed) {
  return seed.scores.at(rank_score);
}

/// A recommender run: several arms, each with several seeds, on one data set. The units are its users. Each result has
/// the metrics of ranking_metrics(), which are means over the ranks. Docs: docs/run-file.md.
struct RecommendRun : TrainedRun {   // the request has "backbone", "training", and in "data" "format", "users", "items"
                                     // and "interactions" too
  std::vector<std::int64_t> target;  ///< [user] id of the test item, from 1
  std::vector<std::int64_t> validation_target;  ///< [user] id of the validation item; empty: nothing has its ranks
  std::vector<std::int64_t> history_length;     ///< [user] number of items known at the test
  std::vector<std::int64_t> training_length;    ///< [user] number of training items
  std::vector<std::int64_t> item_train_count;   ///< [item], of the item with the id of its place + 1

  std::string backbone() const { return request.at("backbone"); }
  std::string unit() const { return "user"; }
};

/// Whether two runs rank the same items for the same users.
bool have_same_units(const RecommendRun& one, const RecommendRun& other);

/// Names that a learning curve can have: "training_loss", and those of ranking_metrics().
std::vector<std::string> curve_names();

/// Why the training has diverged (core/divergence.h); empty if it has not, or if the run holds no losses.
/// @param items  of the catalogue
std::string divergence_of(const TrainedSeed& seed, std::int64_t items);

/// Writes run.h5 completely or not at all. The same arguments give the same bytes.
/// @throws RunFailed      a write, a flush or a closing failed
/// @throws InternalError  sizes that do not fit each other, names of unknown metrics
void write_recommend_run(const std::filesystem::path& path, const RecommendRun& run,
                         std::string_view program_version = {});

/// The file is untrusted: it is compared with `run.h5.sha256` beside it, where there is one; shapes, types and values
/// are checked. Unknown groups and datasets are not read.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  missing, not HDF5, another format or version, datasets that are absent or do not fit each
///     other, values out of range, metrics that are not those of the ranks
RecommendRun read_recommend_run(const std::filesystem::path& path);

/// The same run with its validation items in the place of the test items: its targets, ranks, metrics and known items.
/// What the lists of the test are like is left out.
/// @param where  the run, for messages
/// @throws InvalidArgument  a finished training has no ranks of validation items (earlier versions did not store them)
RecommendRun on_validation_items(const RecommendRun& run, const std::string& where);

}  // namespace gainlens::runfile
