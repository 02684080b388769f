#pragma once

#include "models/checkpoint/checkpoint_source.h"
#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::models {

/// Number and size of the tensors of one type on disk.
struct DTypeShare {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// Neighbouring layers of one kind.
struct LayerRun {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::string kind;  ///< as hooks::AttentionLayout::kind()
};

/// How one kind of layer encodes positions, in words.
struct PositionEncoding {
  std::string kind;  ///< "all layers", "global layers", "window layers"
  std::string text;  ///< "base 500000, llama3 scaling by 8 from 8192 positions"
};

/// What can be said of the files of a checkpoint without reading a weight. Time and memory do not grow with the files.
struct CheckpointDescription {
  std::string format;               ///< "safetensors" or "GGUF version 3"
  std::uint64_t bytes_on_disk = 0;  ///< of all files that determine the numbers, including config.json
  std::uint64_t files = 0;
  std::uint64_t weight_files = 0;  ///< files that hold tensors
  std::uint64_t tensors = 0;
  std::map<std::string, DTypeShare> dtypes;  ///< by name of the type on disk
};

/// @throws InvalidArgument  a file was removed after it was opened
CheckpointDescription describe_checkpoint(const CheckpointSource& source);

/// @param kinds  of every layer, hooks::AttentionLayout::kinds()
std::vector<LayerRun> layer_runs(const std::vector<std::string>& kinds);

/// Layers in words: "0-4 window:512, 5 global, and so on every 6 layers". Runs that do not repeat are all named: "0-1
/// window:64, 2 global".
std::string layer_runs_text(const std::vector<std::string>& kinds);

/// One entry if all layers are alike, or for the global layers if the others have no attention and no positions;
/// one for the global layers and one for the layers with a window, if these two differ; else one that names the layers.
std::vector<PositionEncoding> position_encodings(const DecoderConfig& config);

}  // namespace gainlens::models
