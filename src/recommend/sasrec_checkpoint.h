#pragma once

#include "data/leave_one_out.h"
#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens::recommend {

/// How a checkpoint stores a SASRec.
enum class CheckpointLayout {
  gainlens,  ///< a folder with config.json and model.safetensors, as save_sasrec writes it
  iclrec,    ///< a safetensors file with the names of S3-Rec and ICLRec; the last item id is a mask token
};

/// @throws InvalidArgument  neither "gainlens" nor "iclrec" (nearest match named)
CheckpointLayout parse_checkpoint_layout(std::string_view name);

/// The data that a checkpoint was trained on.
struct TrainedOn {
  std::string item_names = {};  ///< checksum of the catalogue; empty: the items are named 1, 2, ...
  std::string split = {};       ///< data::LeaveOneOut::checksum(); empty: not known, as in earlier versions
  std::string ties = {};        ///< data::TiePolicy::name() with which it was read; empty: not known
  std::int64_t min_item_count = 0;
};

struct SasRecCheckpoint {
  SasRecConfig config;
  SasRecWeights weights;  ///< float32, without gradients
  std::string seed = {};  ///< that it was trained with; empty: not known
  TrainedOn data = {};
  std::string unproven = {};  ///< why its files were not compared with checksums; empty: they were
};

/// SHA-256 over the names of the items in the order of their ids, a newline after each.
std::string item_names_checksum(const data::Interactions& interactions);
/// @param options  with which the interactions of the split were read
TrainedOn trained_on_split(const data::LeaveOneOut& split, const data::InteractionOptions& options);

/// @param path   the folder (gainlens), or the file or a folder with one (iclrec)
/// @param heads  of the layout iclrec, whose files do not tell it
/// @throws InvalidArgument  missing or broken files; files that have changed since their training ended
///     (prove_checkpoint); tensors that are missing, surplus or of the wrong shape; NaN or infinity in a tensor
SasRecCheckpoint load_sasrec(const std::filesystem::path& path, CheckpointLayout layout, std::int64_t heads = 2);

/// The weights of a model from wherever they are stored.
/// @param where  names the place in messages
/// @throws InvalidArgument  as `source`; a number that no training writes
SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const std::string& where, const WeightSource& source);

/// Refuses a data set whose items are not those of the checkpoint.
/// @throws InvalidArgument  another number of items, other names
void check_catalogue(const SasRecCheckpoint& checkpoint, const data::Interactions& interactions,
                     const std::string& where);

/// Whether a data set has the split that the checkpoint was trained on.
enum class SplitMatch { same, other, unknown };
SplitMatch match_split(const SasRecCheckpoint& checkpoint, const data::LeaveOneOut& split);

/// Writes config.json and model.safetensors, each atomically.
/// @param data, seed  see SasRecCheckpoint
/// @throws InvalidArgument  the folder cannot be written to; RunFailed  NaN or infinity in a weight; the disk is full
void save_sasrec(const std::filesystem::path& folder, const SasRecConfig& config, SasRecWeights weights,
                 const TrainedOn& data, const std::string& seed = {});

}  // namespace gainlens::recommend
