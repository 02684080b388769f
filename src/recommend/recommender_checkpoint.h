#pragma once

#include "data/leave_one_out.h"
#include "recommend/backbone.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::recommend {

/// How `gainlens train recommend` stores a recommender: a folder with config.json and model.safetensors. Other layouts
/// are those of BackboneKind::layouts.
inline constexpr std::string_view own_layout = "gainlens";

/// The names of the items of a checkpoint: a line for each, in the order of the ids. Its SHA-256 is
/// TrainedOn::item_names.
inline constexpr const char* item_names_file = "items.txt";

/// @throws InvalidArgument  neither own_layout nor the layout of a backbone (nearest match named)
void check_layout(std::string_view name);

/// The data that a checkpoint was trained on.
struct TrainedOn {
  std::string item_names = {};  ///< checksum of the catalogue; empty: the items are named 1, 2, ...
  std::string split = {};       ///< data::LeaveOneOut::checksum(); empty: not known, as in earlier versions
  std::string ties = {};        ///< data::TiePolicy::name() with which it was read; empty: not known
  std::int64_t min_item_count = 0;
  std::string duplicates = "keep";         ///< data::duplicates_name()
  std::string protocol = "leave-one-out";  ///< data::SplitPolicy::name()
  std::string times = {};  ///< data::LeaveOneOut::checksum_of_times(), of a model that reads times; empty: not known

  /// "--ties file --min-item-count 0", and --duplicates and --split if they are not the default.
  std::string options() const;
};

struct RecommenderCheckpoint {
  std::unique_ptr<Backbone> model;  ///< in float32, without gradients
  std::string seed = {};            ///< that it was trained with; empty: not known
  TrainedOn data = {};
  /// [id - 1] names of the items; empty: they were not stored, as in earlier versions, or are the ids
  std::vector<std::string> items = {};
  std::string unproven = {};  ///< why its files were not compared with checksums; empty: they were
};

/// SHA-256 over the names of the items in the order of their ids, a newline after each.
std::string item_names_checksum(const data::Interactions& interactions);
/// @param options  with which the interactions of the split were read
/// @param times    whether the model reads them
TrainedOn trained_on_split(const data::LeaveOneOut& split, const data::InteractionOptions& options, bool times);

/// Opens a recommender of whatever backbone.
/// @param path     the folder (own_layout), or the file or a folder with one (other layouts)
/// @param options  of other layouts than own_layout
/// @throws InvalidArgument  missing or broken files; a backbone that this version does not know; files that have
///     changed since their training ended (prove_checkpoint); tensors that are missing, surplus or of the wrong shape;
///     NaN or infinity in a tensor
RecommenderCheckpoint open_recommender(const std::filesystem::path& path, std::string_view layout = own_layout,
                                       const ForeignOptions& options = {});

/// Refuses a data set whose items are not those of the checkpoint.
/// @throws InvalidArgument  another number of items, other names
void check_catalogue(const RecommenderCheckpoint& checkpoint, const data::Interactions& interactions,
                     const std::string& where);

/// Whether a data set has the split that the checkpoint was trained on, and the times, if the model reads them.
enum class SplitMatch { same, other, other_times, unknown };
SplitMatch match_split(const RecommenderCheckpoint& checkpoint, const data::LeaveOneOut& split);

/// Writes config.json and model.safetensors, each atomically.
/// @param data, seed  see RecommenderCheckpoint
/// @param items       names to store beside them in item_names_file, of which data.item_names is the checksum; empty:
///     none
/// @throws InvalidArgument  the folder cannot be written to; RunFailed  NaN or infinity in a weight; the disk is full
void save_recommender(const std::filesystem::path& folder, Backbone& model, const TrainedOn& data,
                      const std::string& seed = {}, std::span<const std::string> items = {});

}  // namespace gainlens::recommend
