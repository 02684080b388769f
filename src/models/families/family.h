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

/// How the checkpoints of a family look as GGUF files.
struct GgufFamily {
  std::string_view architecture;  ///< general.architecture; empty: the family is not read from GGUF
  /// If several families have the architecture: a metadata key that only files of this family have. Empty in the family
  /// of files that have none of these keys.
  std::string_view chosen_by = {};
  /// The same, by a part of the name of a tensor.
  std::string_view chosen_by_tensor = {};
  /// Sizes of keys, values and KV heads are those of the short rows of latent attention, or say less than the family
  /// needs: `complete` reads them, and the number of rotated dimensions.
  bool latent = false;
  TensorNames tensors;  ///< gguf_names(), with the names that differ in this family
  /// Metadata keys (without the architecture) that have another name in config.json, in addition to the keys of all
  /// families.
  std::vector<std::pair<std::string_view, std::string_view>> keys;
  /// Metadata keys (without the architecture) that the family does not need.
  std::vector<std::string_view> inert_keys;
  /// Fills in what the metadata leave out, and converts what they express in their own way. Null: nothing to do.
  void (*complete)(GgufConfig& config) = nullptr;
};

/// Another way in which checkpoints of a family begin the names of their tensors.
struct OtherLayout {
  std::string_view prefix;  ///< in place of TensorNames::prefix
  std::string_view head;    ///< in place of TensorNames::head
};

/// The description of one family of checkpoints. A new family is one file in families/ and one line in
/// families/table.cpp.
struct Family {
  std::string_view name;      ///< model_type of config.json
  std::string_view title;     ///< for readers: "Gemma 2"
  std::string_view examples;  ///< well-known checkpoints, for the page of supported models
  /// Names that the classes of the family begin with: "Llama" of LlamaForCausalLM, LlamaModel and LlamaConfig. The
  /// first is that of the reference, others are those of earlier code.
  std::vector<std::string_view> classes;
  std::string_view class_suffix = "ForCausalLM";  ///< of the class of a language model
  /// Reads every key that can change the mathematics, even if its value does not. A key that is not read is refused
  /// afterwards.
  /// @throws InvalidArgument  a key is missing, of the wrong type or out of range; no decoder computes this combination
  DecoderConfig (*parse)(ConfigReader& reader) = nullptr;
  CommonKeys keys;
  TensorNames tensors;
  /// Keys that the files of the family have and its reference ignores, in addition to those of inert_keys.h.
  std::vector<std::string_view> inert_keys;
  /// Parts of the names of tensors that the decoder does not use: buffers, other modalities.
  std::vector<std::string_view> inert_tensors;
  /// Part of the name of a tensor that layers after the last one have if they predict further tokens. The decoder does
  /// not run such layers. Empty: there are none.
  std::string_view further_layers;
  std::vector<OtherLayout> layouts;  ///< that a checkpoint may have in place of that of `tensors`
  /// The names, if they depend on the configuration. Null: `tensors`.
  TensorNames (*names)(const DecoderConfig& config, TensorNames tensors) = nullptr;
  GgufFamily gguf;
};

/// All families, in the order of the table.
std::span<const Family> families();

/// @param where  the file with this model_type, for messages
/// @throws InvalidArgument  the model_type is unknown (the message suggests the nearest and lists all), or known and
/// left
///     out (the message says why)
const Family& family_named(std::string_view model_type, std::string_view where);

/// The family's names for tensors of this configuration.
TensorNames tensor_names(const Family& family, const DecoderConfig& config);

}  // namespace gainlens::models
