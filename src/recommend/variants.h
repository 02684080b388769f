#pragma once

#include "core/json.h"
#include "recommend/settings.h"

#include <map>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// A named set of settings that differ from those of the run.
struct Variant {
  std::string name;
  Json changes;  ///< by key of the settings
};

/// The settings of each variant, by name.
/// @throws InvalidArgument  a name cannot be that of a folder, or stands twice; a key is unknown (nearest match named),
///     of the wrong type or out of range; two variants have the same settings, or one has those of the run
std::map<std::string, Settings> settings_of_variants(const std::vector<Variant>& variants, const Settings& run);

/// What a request stores of them: the changed keys of each, by name. Empty if there are none.
Json to_json(const std::map<std::string, Settings>& variants, const std::vector<Variant>& given);

/// The variants that a run in the folder holds; none if there is no run.
/// @throws InvalidArgument  its request cannot be read
std::vector<Variant> stored_variants(const Json& request, const std::string& where);

/// The settings of a run, or of one of its variants.
/// @param request  of the run
/// @param variant  empty: the run's own
/// @throws InvalidArgument  the request cannot be read; it has no such variant
Settings settings_of_request(const Json& request, const std::string& variant, const std::string& where);

}  // namespace gainlens::recommend
