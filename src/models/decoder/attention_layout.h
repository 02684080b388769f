#pragma once

#include "hooks/hooked_model.h"
#include "models/decoder/decoder_config.h"

namespace gainlens::models {

/// What a decoder of this configuration attends with. It is Decoder::layout(), and can be had before any weight is
/// read.
hooks::AttentionLayout attention_layout(const DecoderConfig& config);

}  // namespace gainlens::models
