#pragma once

#include "core/json.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// What every command that reads a training checks of its request.

namespace gainlens::runfile {

/// Versions of the training procedures, part of a request. To be raised when the same request would give other weights.
inline constexpr std::int64_t recommend_request_version = 2, language_request_version = 2;

/// What this version of gainlens knows of the request of a training.
struct KnownRequest {
  std::int64_t version = 0;                              ///< the newest
  std::map<std::string, std::vector<std::string>> keys;  ///< by the JSON pointer to an object, all that it can have
};

/// Refuses a request that a newer version of gainlens made: what it says of the training is not known here.
/// @param where  names the request in messages
/// @throws InvalidArgument  its version is higher, or objects in it have keys that are not known; all are named
void refuse_newer_request(const Json& request, const KnownRequest& known, const std::string& where);

/// @param settings  the keys of 'training'
KnownRequest known_recommend_request(std::vector<std::string> settings);
/// @param filter  the keys of 'filter'
KnownRequest known_language_request(std::vector<std::string> filter);

/// Reads request.json of a recommender run.
/// @param folder  that holds the file
/// @returns  an object with the text 'backbone' and the object 'training'
/// @throws InvalidArgument  it cannot be read or is another file; the message names it and says what can be done
Json read_recommend_request(const std::filesystem::path& folder);

}  // namespace gainlens::runfile
