#pragma once

#include "core/json.h"
#include "models/decoder/decoder_config.h"

#include <string>
#include <vector>

namespace gainlens::models {

/// Key of config.json that holds the options of the filter, an object with the keys of bft::filter_knobs(). An option
/// that it does not have is what held before the option existed.
inline constexpr const char* filter_key = "gainlens_filter";

/// Key of config.json that names the arm. Absent: bft, as before decoders had other arms.
inline constexpr const char* filter_arm_key = "gainlens_arm";

/// Names of the arms of a decoder: plain, bft, and the controls that have a part of the filter.
std::vector<std::string> decoder_arm_names();
/// @throws InvalidArgument  a decoder has no such arm (nearest match named)
bft::Arm decoder_arm(const std::string& name, const std::string& where);

/// The filter's options for a decoder before anything is chosen: the paper's, with the output projection that decoders
/// have.
bft::FilterOptions default_decoder_filter();

/// Checks the options alone.
/// @param where  begins the message
/// @throws InvalidArgument  options that contradict each other, or that decoders do not know
void check_filter_options(const bft::FilterOptions& filter, const std::string& where);

/// Checks that a decoder of this configuration can have its filter.
/// @param where  begins the message
/// @throws InvalidArgument  the filter has an option that decoders do not know, or the decoder a part that the filter
///     does not know
void check_filter(const DecoderConfig& config, const std::string& where);

/// The filter's options of a config.json.
/// @throws InvalidArgument  no object; a key is unknown, of the wrong type or out of range
bft::FilterOptions parse_filter(const Json& options, const std::string& where);

}  // namespace gainlens::models
