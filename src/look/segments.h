#pragma once

#include "core/prompt_look.h"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gainlens::look {

/// Reads the pieces of a prompt: [{"name": "question", "begin": 0, "end": 12}, ..], in token positions.
/// @param positions  tokens of the prompt, BOS included: the pieces cover them all, in order
/// @throws InvalidArgument  not such a list; pieces that overlap, leave a gap or are empty; a name twice
std::vector<PromptSegment> read_segments(const std::filesystem::path& path, std::int64_t positions);

}  // namespace gainlens::look
