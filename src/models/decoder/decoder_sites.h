#pragma once

#include "hooks/site.h"
#include "models/decoder/decoder_config.h"

#include <vector>

namespace gainlens::models {

/// Every site of a decoder of this configuration, in the order in which they fire.
std::vector<hooks::SiteShape> decoder_sites(const DecoderConfig& config);

}  // namespace gainlens::models
