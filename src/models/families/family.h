#pragma once

#include "formats/gguf_file.h"
#include "models/decoder/decoder_config.h"
#include "models/families/common_keys.h"
#include "models/families/config_reader.h"
#include "models/families/gguf_config.h"
#include "models/families/tensor_names.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::models {

/// How a family's checkpoints look as GGUF files.
struct GgufFamily {
  std::string_view architecture;  ///< general.architecture; empty: the family is not read from GGUF
  TensorNames tensors;            ///< gguf_names() and what is particular
  /// Metadata keys (without the architecture) whose values config.json has under another name, beyond those every
  /// family has.
  std::vector<std::pair<std::string_view, std::string_view>> keys;
  std::vector<std::string_view>
      inert_keys;  ///< metadata keys (without the architecture) that say nothing the family needs
  /// Fills in what the metadata leave out, and what they say in a way of their own. Nothing: there is no such thing.
  void (*complete)(GgufConfig& config) = nullptr;
};

/// What one family of checkpoints says about itself. A new family is one file in families/ and its line in
/// families/table.cpp.
struct Family {
  std::string_view name;      ///< model_type of config.json
  std::string_view title;     ///< for people: "Gemma 2"
  std::string_view examples;  ///< well-known checkpoints, for the page of supported models
  /// Reads every key that changes the mathematics, whether or not its value does: a key left unread is refused
  /// afterwards.
  /// @throws InvalidArgument  a key missing, of the wrong type or out of range, a combination no decoder computes
  DecoderConfig (*parse)(ConfigReader& reader) = nullptr;
  CommonKeys keys;
  TensorNames tensors;
  std::vector<std::string_view> inert_keys;  ///< beyond inert_keys.h: keys the family carries and its reference ignores
  std::vector<std::string_view>
      inert_tensors;  ///< parts of the names of tensors that take no part: buffers, other modalities
  std::vector<std::string_view> prefixes;  ///< that a checkpoint may have in place of tensors.prefix
  TensorNames (*names)(const DecoderConfig& config,
                       TensorNames tensors) = nullptr;  ///< where names depend on the configuration
  GgufFamily gguf;
};

/// All families, in the order of the table.
std::span<const Family> families();

/// @param where  the file that names it
/// @throws InvalidArgument  unknown (nearest match and the whole list)
const Family& family_named(std::string_view model_type, std::string_view where);

/// The family's names for tensors of this configuration.
TensorNames tensor_names(const Family& family, const DecoderConfig& config);

}  // namespace gainlens::models
