#pragma once

#include "core/json.h"
#include "models/decoder/decoder_config.h"

#include <string>

namespace gainlens::models {

/// Key of config.json that holds the options of the filter, an object with the keys of bft::filter_knobs(). An option
/// that it does not have is what held before the option existed.
inline constexpr const char* filter_key = "gainlens_filter";

/// The filter's options for a decoder before anything is chosen: the paper's, with the output projection that decoders
/// have.
bft::FilterOptions default_decoder_filter();

/// Checks that a decoder of this configuration can have its filter.
/// @param where  begins the message
/// @throws InvalidArgument  the filter has an option that decoders do not know, or the decoder a part that the filter
///     does not know
void check_filter(const DecoderConfig& config, const std::string& where);

/// The filter's options of a config.json.
/// @throws InvalidArgument  no object; a key is unknown, of the wrong type or out of range
bft::FilterOptions parse_filter(const Json& options, const std::string& where);

}  // namespace gainlens::models
