#pragma once

#include "recommend/sasrec_config.h"
#include "recommend/sasrec_weights.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace gainlens::recommend {

struct StoredSasRec {
  SasRecConfig config;
  SasRecWeights weights;  ///< float32, without gradients
};

/// The weights of a model in the layout of gainlens.
/// @throws InvalidArgument  as `source`; a number that no training writes
SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source);

/// Reads a model in the layout iclrec: a safetensors file with the names of S3-Rec and ICLRec, whose last item id is a
/// mask token.
/// @param path   the file, or a folder with one
/// @param heads  number of attention heads, which the file does not tell
/// @throws InvalidArgument  missing or broken files; tensors that are missing, surplus or of the wrong shape; NaN or
///     infinity in a tensor
StoredSasRec load_iclrec(const std::filesystem::path& path, std::int64_t heads);

}  // namespace gainlens::recommend
