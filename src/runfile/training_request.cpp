#include "runfile/training_request.h"

#include "core/check.h"
#include "core/knobs.h"
#include "runfile/run_file_name.h"

#include <algorithm>
#include <utility>

namespace gainlens::runfile {

void refuse_newer_request(const Json& request, const KnownRequest& known, const std::string& where) {
  std::vector<std::string> unknown;
  for (const auto& [place, keys] : known.keys) {
    const Json::json_pointer pointer(place);
    if (!request.contains(pointer) || !request.at(pointer).is_object()) continue;
    for (const auto& [key, value] : request.at(pointer).items()) {
      if (std::ranges::find(keys, key) == keys.end()) unknown.push_back(fmt::format("{}/{}", place, key));
    }
  }
  CHECK(unknown.empty(), "{}: {}", where, made_by_newer_version(unknown));
  const auto version = request.is_object() ? request.find("version") : request.end();
  const bool is_newer = version != request.end() && version->is_number_integer() && *version > known.version;
  CHECK(!is_newer, "{}: made by a newer version of gainlens; /version is {}, and this one knows up to {}", where,
        version->dump(), known.version);
}

KnownRequest known_recommend_request(std::vector<std::string> settings) {
  return {recommend_request_version,
          {{"", {"kind", "version", "backbone", "data", "training", "threads", "processes", "variants"}},
           {"/data", {"name", "format", "users", "items", "interactions", "split", "untested_items", "times"}},
           {"/training", std::move(settings)}}};
}

KnownRequest known_language_request(std::vector<std::string> filter) {
  return {language_request_version,
          {{"", {"kind", "version", "recipe", "texts", "seed", "filter", "precision_learning_rate", "arm"}},
           {"/filter", std::move(filter)}}};
}

Json read_recommend_request(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / request_file_name;
  const std::string repair = "put it back, or give run.h5 in its place, which holds the request too";
  Json request;
  try {
    request = read_json_file(file);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; {}", error.what(), repair);
  }
  const bool fits = request.is_object() && request.contains("backbone") && request.at("backbone").is_string() &&
                    request.contains("training") && request.at("training").is_object();
  CHECK(fits, "{}: is not the request of a recommender run; {}", printable(file.string()), repair);
  return request;
}

}  // namespace gainlens::runfile
