#include "training/stored_request.h"

#include "core/check.h"
#include "core/sha256.h"
#include "runfile/run_file_name.h"
#include "runfile/training_request.h"

#include <fmt/ranges.h>

namespace gainlens::training {
namespace {

using Pointer = Json::json_pointer;

bool has_object(const Json& request, const std::string& place) {
  return request.contains(Pointer(place)) && request.at(Pointer(place)).is_object();
}

/// The request with every key that it may lack.
Json filled(Json request, const RequestRules& rules) {
  for (const auto& [place, values] : rules.absent) {
    if (!has_object(request, place)) continue;
    Json complete = values;
    complete.update(request.at(Pointer(place)));
    request.at(Pointer(place)) = std::move(complete);
  }
  return request;
}

/// Pointers to the keys of a request that another one lacks, in objects of which a version knows every key.
std::vector<std::string> keys_beyond(const Json& request, const Json& other, const RequestRules& rules) {
  std::vector<std::string> found;
  for (const std::string& place : rules.complete) {
    if (!has_object(request, place) || !has_object(other, place)) continue;
    for (const auto& [key, value] : request.at(Pointer(place)).items()) {
      if (!other.at(Pointer(place)).contains(key)) found.push_back(fmt::format("{}/{}", place, key));
    }
  }
  return found;
}

/// What the version knows that asks.
/// @param complete  its request, filled
runfile::KnownRequest known_by(const Json& complete, std::int64_t version, const RequestRules& rules) {
  runfile::KnownRequest known{version, {}};
  for (const std::string& place : rules.complete) {
    if (!has_object(complete, place)) continue;
    std::vector<std::string>& keys = known.keys[place];
    for (const auto& [key, value] : complete.at(Pointer(place)).items()) keys.push_back(key);
  }
  return known;
}

std::int64_t version_of(const Json& request) {
  const auto found = request.find("version");
  return found != request.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// Describes the first difference between two filled requests; empty if they are the same.
/// @param as_stored  the stored request as it is
/// @param hints      RequestRules::hints
std::string first_difference(const Json& stored, const Json& asked, const Json& as_stored,
                             const std::map<std::string, std::string>& hints) {
  for (const Json& change : Json::diff(stored, asked)) {
    const Pointer place(change.at("path").get<std::string>());
    const auto shown = [&place](const Json& json) {
      const bool known = json.contains(place) && !json.at(place).is_null();
      return known ? printable(json.at(place).dump(), 80) : "absent";
    };
    if (place.back() == "-")
      return fmt::format("{} has more entries in this request", printable(place.parent_pointer().to_string(), 100));
    const bool meant = stored.contains(place) && !stored.at(place).is_null() && !as_stored.contains(place);
    const auto hint = hints.find(place.to_string());
    return fmt::format("{} is {} in the stored request{} and {} in this one{}", printable(place.to_string(), 100),
                       shown(stored), meant ? " (which does not name it)" : "", shown(asked),
                       hint != hints.end() ? " (" + hint->second + ")" : "");
  }
  return "";
}

}  // namespace

void check_same_request(const Json& stored, const Json& asked, const std::filesystem::path& folder,
                        const RequestRules& rules) {
  const std::string where = printable(folder.string());
  const std::string file = printable((folder / runfile::request_file_name).string());
  CHECK(stored.is_object() && !stored.empty(),
        "{}: is not the request of a training; put it back, or choose another folder", file);
  const std::int64_t stored_version = version_of(stored), own_version = version_of(asked);
  CHECK(stored_version >= own_version,
        "{}: holds a training with another request: /version is {} in the stored request and {} in this one: an "
        "earlier version of gainlens made it; choose another folder",
        where, stored_version, own_version);
  Json complete = filled(asked, rules);
  const runfile::KnownRequest known = known_by(complete, own_version, rules);
  if (stored_version > own_version) runfile::refuse_newer_request(stored, known, file);
  for (const std::string& place : rules.first) {
    const auto of = [&](const Json& request) {
      return request.contains(Pointer(place)) ? request.at(Pointer(place)) : Json();
    };
    const std::string difference =
        first_difference({{"at", of(stored)}}, {{"at", of(asked)}}, {{"at", of(stored)}}, {});
    CHECK(difference.empty(), "{}: holds a training with another request: {}{}; choose another folder", where, place,
          difference.substr(std::string_view("/at").size()));
  }
  runfile::refuse_newer_request(stored, known, file);
  Json grown = filled(stored, rules);
  const std::vector<std::string> missing = keys_beyond(complete, grown, rules);
  CHECK(missing.empty(),
        "{}: holds a training with another request: its request.json lacks {}, which every version writes; choose "
        "another folder",
        where, printable(fmt::format("{}", fmt::join(missing, ", ")), 200));
  for (const std::string& place : rules.may_grow) {
    const Pointer at(place);
    const bool numbers = grown.contains(at) && complete.contains(at) && grown.at(at).is_number_integer() &&
                         complete.at(at).is_number_integer();
    if (numbers && grown.at(at) < complete.at(at)) grown.at(at) = complete.at(at);
  }
  for (const std::string& place : rules.names) {
    if (grown.contains(Pointer(place)) && complete.contains(Pointer(place)))
      grown.at(Pointer(place)) = complete.at(Pointer(place));
  }
  for (const std::string& place : rules.may_gain) {
    if (!has_object(grown, place) || !has_object(complete, place)) continue;
    const Json left = grown.at(Pointer(place)), right = complete.at(Pointer(place));
    grown.at(Pointer(place)).update(right);
    grown.at(Pointer(place)).update(left);
    complete.at(Pointer(place)).update(left);
    complete.at(Pointer(place)).update(right);
  }
  const std::string difference = first_difference(grown, complete, stored, rules.hints);
  CHECK(difference.empty(), "{}: holds a training with another request: {}; choose another folder", where, difference);
}

Json in_form_of(const Json& stored, Json asked, const RequestRules& rules) {
  for (const std::string& place : rules.names) {
    if (stored.contains(Pointer(place)) && asked.contains(Pointer(place)))
      asked.at(Pointer(place)) = stored.at(Pointer(place));
  }
  for (const std::string& place : rules.may_gain) {
    if (!has_object(stored, place)) continue;
    Json gained = stored.at(Pointer(place));
    if (has_object(asked, place)) gained.update(asked.at(Pointer(place)));
    asked[Pointer(place)] = std::move(gained);
  }
  for (const auto& [place, values] : rules.absent) {
    if (!has_object(stored, place) || !has_object(asked, place)) continue;
    const Json& kept = stored.at(Pointer(place));
    Json& form = asked.at(Pointer(place));
    for (const auto& [key, value] : values.items()) {
      if (!kept.contains(key) && form.contains(key) && form.at(key) == value) form.erase(key);
      if (kept.contains(key) && !form.contains(key) && !value.is_null()) form[key] = value;
    }
  }
  return asked;
}

std::string request_identity(Json request, const RequestRules& rules) {
  for (const std::string& place : rules.may_grow) {
    const Pointer at(place);
    if (request.contains(at)) request.at(at) = nullptr;
  }
  return sha256_hex(request.dump());
}

}  // namespace gainlens::training
