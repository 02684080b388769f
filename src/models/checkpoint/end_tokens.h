#pragma once

#include "models/checkpoint/checkpoint_source.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::models {

/// The tokens behind which a text of the model ends.
struct EndTokens {
  std::vector<std::int64_t> ids;      ///< ascending, below the vocabulary; empty: the checkpoint names none
  std::string source;                 ///< the file and key that name them, for people; empty without ids
  std::vector<std::int64_t> outside;  ///< ids that are named too, and that the vocabulary does not have; ascending
};

/// What a checkpoint says about the end of a text: `eos_token_id` of generation_config.json, else that of config.json
/// (or of its text_config); of a GGUF file `tokenizer.ggml.eos_token_id` and `tokenizer.ggml.eot_token_id`. Ids outside
/// of the vocabulary, which some configurations have from their defaults, end no text: none reaches them.
/// @throws InvalidArgument  the key holds something other than an id, a list of ids or null
EndTokens end_tokens(const CheckpointSource& source);

}  // namespace gainlens::models
