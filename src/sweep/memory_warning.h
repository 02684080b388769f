#pragma once

#include "models/checkpoint/memory_needed.h"
#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// A sentence for the user if a sweep needs more memory than there is: both numbers, and which single options would
/// make it fit, each with its own number. If none does, what --dtype bfloat16 and --stream-weights together need. Empty
/// if the sweep fits, or if it is not known what is available.
///
/// @param options    of the sweep, for its longest length
/// @param lengths    all lengths of the sweep, in tokens, in ascending order
/// @param available  bytes that the process can still take (core/available_memory.h)
std::optional<std::string> memory_warning(const models::DecoderConfig& config, const models::MemoryOptions& options,
                                          const std::vector<std::int64_t>& lengths,
                                          std::optional<std::uint64_t> available);

}  // namespace gainlens::sweep
