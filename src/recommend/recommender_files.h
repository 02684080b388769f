#pragma once

#include "core/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

// What the config.json of a recommender tells without its backbone.

namespace gainlens::recommend {

/// Of a catalogue: ids are int32.
inline constexpr std::int64_t max_items = (std::int64_t{1} << 31) - 2;

/// 'model_type' in config.json of a backbone's models: "gainlens-" and the name of the backbone.
std::string model_type_of(std::string_view backbone);
/// The name of the backbone in a 'model_type'; empty: it is not that of a recommender.
std::optional<std::string> backbone_of_type(const Json& model_type);

/// Whether the path is a folder whose config.json is that of a recommender, of whatever backbone. False if that cannot
/// be read.
bool is_recommender(const std::filesystem::path& path);

/// The number of items in the catalogue of a recommender.
/// @throws InvalidArgument  config.json is missing or broken, or does not tell it
std::int64_t catalogue_size(const std::filesystem::path& folder);

}  // namespace gainlens::recommend
