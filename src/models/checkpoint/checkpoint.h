#pragma once

#include "models/checkpoint/read_config.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace gainlens::models {

/// A decoder's configuration and weights, read and checked.
struct Checkpoint {
  DecoderConfig config;
  DecoderWeights weights;
  std::filesystem::path path;  ///< the folder of config.json, or the GGUF file
  /// The files that determine the numbers: config.json, then the weight files (and their index); or the parts of the
  /// GGUF.
  std::vector<std::filesystem::path> files;
  std::vector<std::string> notes;  ///< CheckpointSource::notes
};

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;  ///< compute dtype, see parse_dtype
  at::Device device = at::kCPU;       ///< where it computes; kernels::compute_device() makes a GPU ready
  bool stream = false;  ///< load_decoder: no layer stays in memory; each is read from the files when it runs
  /// Only the values of the layers [0, N) are read (at least 1, at most all). Such a model can run no others. Unset:
  /// all.
  std::optional<std::int64_t> first_layers;
  IgnoredKeys ignored_keys;
};

/// Checks everything that load_checkpoint checks, except the values of the weights, which are not read. So a checkpoint
/// of any size is checked at once. A tied pair is compared if the file has both tensors.
/// @throws InvalidArgument  as load_checkpoint, except for NaN and infinity
void check_checkpoint(const std::filesystem::path& path);

/// Reads the configuration and the weights, tensor by tensor, into `options.dtype`. Peak memory is the model once plus
/// one tensor.
///
/// A tied embedding may be stored as embedding, as head, or as both if their bytes are equal. Names without the leading
/// "model." are read too. RoPE tables of old checkpoints are ignored.
///
/// @throws InvalidArgument  as read_decoder_config and formats::TensorDirectory; tensors that are missing, surplus, of
///     the wrong shape, or neither of floating point nor quantised (all of them in one message); NaN or infinity in a
///     tensor, or a number that `options.dtype` cannot hold (the message names the tensor and the first place)
Checkpoint load_checkpoint(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace gainlens::models
