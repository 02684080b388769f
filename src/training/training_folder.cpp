#include "training/training_folder.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/sha256.h"

namespace gainlens::training {
namespace {

const std::filesystem::path& made_writable(const std::filesystem::path& folder) {
  ensure_writable_folder(folder);
  return folder;
}

/// Describes the first difference between two requests; empty if they are the same.
std::string first_difference(const Json& stored, const Json& asked) {
  for (const Json& change : Json::diff(stored, asked)) {
    const Json::json_pointer place(change.at("path").get<std::string>());
    const auto shown = [&place](const Json& json) {
      return json.contains(place) ? printable(json.at(place).dump(), 80) : "absent";
    };
    if (place.back() == "-")
      return fmt::format("{} has more entries in this request", printable(place.parent_pointer().to_string(), 100));
    return fmt::format("{} is {} in the stored request and {} in this one", printable(place.to_string(), 100),
                       shown(stored), shown(asked));
  }
  return "";
}

}  // namespace

void check_same_request(const Json& stored, const Json& asked, const std::filesystem::path& folder,
                        std::span<const char* const> may_grow) {
  Json grown = stored;
  for (const char* place : may_grow) {
    const Json::json_pointer at(place);
    const bool numbers = stored.contains(at) && asked.contains(at) && stored.at(at).is_number_integer() &&
                         asked.at(at).is_number_integer();
    if (numbers && stored.at(at) < asked.at(at)) grown.at(at) = asked.at(at);
  }
  const std::string difference = first_difference(grown, asked);
  CHECK(difference.empty(), "{}: holds a training with another request: {}; choose another folder",
        printable(folder.string()), difference);
}

std::string request_identity(Json request, std::span<const char* const> may_grow) {
  for (const char* place : may_grow) {
    const Json::json_pointer at(place);
    if (request.contains(at)) request.at(at) = nullptr;
  }
  return sha256_hex(request.dump());
}

TrainingFolder::TrainingFolder(std::filesystem::path folder, const Json& request, std::span<const char* const> may_grow)
    : folder_(std::move(folder)), lock_(made_writable(folder_)), identity_(request_identity(request, may_grow)) {
  const std::filesystem::path file = folder_ / "request.json";
  // Without a saved state nothing can be lost: the new request replaces the old one.
  if (std::filesystem::exists(file) && std::filesystem::exists(state_file())) {
    const Json stored = read_json_file(file);
    check_same_request(stored, request, folder_, may_grow);
    if (stored == request) return;
  }
  write_file_atomically(file, request.dump(2) + "\n");
}

}  // namespace gainlens::training
