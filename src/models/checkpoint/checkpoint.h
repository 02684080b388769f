#pragma once

#include "core/json.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <c10/core/ScalarType.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::models {

/// A decoder's configuration and weights, read and checked.
struct Checkpoint {
  DecoderConfig config;
  DecoderWeights weights;
  std::filesystem::path path;                ///< the folder of config.json, or the GGUF file
  std::vector<std::filesystem::path> files;  ///< config.json, then the weight files (and their index), or the parts of
                                             ///< the GGUF: what determines the numbers
};

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;  ///< compute dtype, see parse_dtype
  bool stream = false;  ///< load_decoder: keep no layer in memory, but read each from the files when it is its turn
};

/// Reads config.json, or the metadata of a GGUF file, alone.
///
/// @param path  a folder in Hugging Face layout, a Hugging Face cache folder (formats::resolve_checkpoint_folder), a
///              GGUF file (any part of a split one), or a folder with one
/// @throws InvalidArgument  no such file; a model_type or architecture without a family; a key that is missing, of the
///                          wrong type, out of range, or unknown (it may change the mathematics); sizes that do not fit
///                          together; a folder with both safetensors and GGUF. Names file, key, what was found and
///                          allowed
DecoderConfig read_decoder_config(const std::filesystem::path& path);

/// The same of a config.json that is no file yet.
/// @param where  names it in messages
DecoderConfig parse_decoder_config(const Json& document, const std::string& where);

/// Checks everything load_checkpoint does but the values of the weights, which are not read: what a checkpoint of any
/// size is judged by at once. A tied pair, where both halves are in the file, is compared.
/// @throws InvalidArgument  as load_checkpoint, NaN and infinity apart
void check_checkpoint(const std::filesystem::path& path);

/// Reads configuration and weights, tensor by tensor into `options.dtype`: peak memory is the model once plus one
/// tensor.
///
/// A tied embedding may lie in the file as embedding, as head, or as both if their bytes are equal. Names without the
/// leading "model." are read too. RoPE tables kept by old checkpoints are passed over.
///
/// @throws InvalidArgument  as read_decoder_config and formats::TensorDirectory; tensors that are missing, surplus, of
/// the wrong shape or neither floating point nor quantised (all of them in one message); NaN or infinity in a tensor,
/// or a number that `options.dtype` cannot hold (names the tensor and the first place)
Checkpoint load_checkpoint(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace gainlens::models
