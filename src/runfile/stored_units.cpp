#include "runfile/stored_units.h"

#include "core/sha256.h"

#include <algorithm>

namespace gainlens::runfile {

namespace fs = std::filesystem;

StoredUnits::StoredUnits(fs::path folder, const Json& request)
    : folder_(std::move(folder)), request_(sha256_hex(json_text(request))) {
  folder_ /= "units";
}

fs::path StoredUnits::file(std::string_view name) const {
  return folder_ / fmt::format("{}.json", name);
}

bool StoredUnits::has(std::string_view name) const {
  return fs::exists(file(name));
}

std::vector<std::string> StoredUnits::names() const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") found.push_back(at->path().stem().string());
  std::ranges::sort(found);
  return found;
}

std::string StoredUnits::checksum(std::string_view name, const Json& unit) const {
  return sha256_hex(fmt::format("{}\n{}\n{}", request_, name, json_text(unit)));
}

std::string StoredUnits::text(std::string_view name, const Json& unit) const {
  return json_text({{"sha256", checksum(name, unit)}, {"unit", unit}}) + "\n";
}

void StoredUnits::check_has_checksum(std::string_view name) const {
  const fs::path at = file(name);
  const Json stored = read_checked(at, [](const Json& json) { return json; });
  CHECK(stored.is_object() && stored.contains("sha256") && stored.contains("unit"),
        "{}: has no checksum, as units of older versions; delete {} and repeat the command", printable(at.string()),
        printable(folder_.string()));
}

const Json& StoredUnits::proven(const Json& stored, std::string_view name) const {
  const Json& unit = stored.at("unit");
  CHECK(stored.at("sha256") == checksum(name, unit), "it is not what was written, or that of another run");
  return unit;
}

}  // namespace gainlens::runfile
