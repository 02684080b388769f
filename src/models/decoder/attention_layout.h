#pragma once

#include "hooks/attention_layout.h"
#include "models/decoder/decoder_config.h"

namespace gainlens::models {

/// The attention layout of a decoder of this configuration. It is the same as Decoder::layout(), and is available
/// before any weight is read.
hooks::AttentionLayout attention_layout(const DecoderConfig& config);

}  // namespace gainlens::models
