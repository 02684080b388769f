#pragma once

#include "models/config_reader.h"
#include "models/decoder_config.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Where a checkpoint keeps each slot of DecoderWeights: module names, to which ".weight" and ".bias" are added. The defaults are the
/// names most families share. Names of a layer follow `layer` with its index put in.
struct TensorNames {
  std::string_view prefix = "model.";  ///< of everything but the head; a checkpoint saved without it is read too
  std::string_view embedding = "embed_tokens";
  std::string_view final_norm = "norm";
  std::string_view head = "lm_head";
  std::string_view layer = "layers.{}.";
  std::string_view attention_norm = "input_layernorm";
  std::string_view query = "self_attn.q_proj";  ///< holds the rows of an output gate too, see gate_rows.h
  std::string_view key = "self_attn.k_proj";
  std::string_view value = "self_attn.v_proj";
  std::string_view output = "self_attn.o_proj";
  std::string_view query_norm = "self_attn.q_norm";
  std::string_view key_norm = "self_attn.k_norm";
  std::string_view mlp_norm = "post_attention_layernorm";
  std::string_view mlp_gate = "mlp.gate_proj";
  std::string_view mlp_up = "mlp.up_proj";
  std::string_view mlp_down = "mlp.down_proj";
};

/// What one family of checkpoints says about itself. A new family is one file in families/ and its line in families/table.cpp.
struct Family {
  std::string_view name;  ///< model_type of config.json
  /// Reads every key that changes the mathematics, whether or not its value does: a key left unread is refused afterwards.
  /// @throws InvalidArgument  a key missing, of the wrong type or out of range, a combination no decoder computes
  DecoderConfig (*parse)(ConfigReader& reader) = nullptr;
  TensorNames tensors;
  std::vector<std::string_view> inert_keys;  ///< beyond inert_keys.h: keys the family carries and its reference ignores
};

/// All families, in the order of the table.
std::span<const Family> families();

/// @param where  the file that names it
/// @throws InvalidArgument  unknown (nearest match and the whole list)
const Family& family_named(std::string_view model_type, std::string_view where);

}  // namespace gainlens::models
