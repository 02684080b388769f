#pragma once

#include "formats/tensor_file.h"
#include "models/families/family.h"
#include "models/families/tensor_names.h"

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace gainlens::models {

/// How the names begin in the text half of a multimodal checkpoint, saved with the configuration of the text model.
inline constexpr std::array<std::string_view, 2> text_half_prefixes = {"model.language_model.",
                                                                       "language_model.model."};

/// The names of a family as the tensors of a checkpoint in Hugging Face layout begin and spell them. A checkpoint may
/// - begin with a prefix of the family's, of its `layouts`, with those of the text half of a multimodal checkpoint
///   ("model.language_model.", "language_model.model."), or without one
/// - hold its experts one by one or as stacks [experts, ..], as transformers 5 saves and holds them, whichever of these
///   the family has.
/// @param names  of the family for this configuration
TensorNames names_in(const std::map<std::string, formats::TensorEntry, std::less<>>& entries, const Family& family,
                     TensorNames names);

}  // namespace gainlens::models
