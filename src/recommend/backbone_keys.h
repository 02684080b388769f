#pragma once

#include <string>
#include <string_view>
#include <vector>

// What commands without libtorch know of the settings of a recommender.

namespace gainlens::recommend {

/// Every key that the settings of a run can have: those of its backbone, of the training and of the filter.
/// @param where  names the request in messages
/// @throws InvalidArgument  no backbone has this name (nearest match named)
std::vector<std::string> settings_keys(std::string_view backbone, const std::string& where);

}  // namespace gainlens::recommend
