#include "runfile/run_log.h"

#include "core/atomic_file.h"
#include "core/check.h"

#include <fmt/chrono.h>

#include <ctime>

namespace gainlens::runfile {

RunLog RunLog::read(const std::filesystem::path& folder) {
  RunLog log;
  log.path_ = folder / "log.json";
  if (!std::filesystem::exists(log.path_)) return log;
  constexpr const char* remedy = "delete it: it holds no results";
  Json content;
  try {
    content = read_json_file(log.path_);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; {}", error.what(), remedy);
  }
  CHECK(
      content.is_object() && content.contains("starts") && content["starts"].is_array() && content.contains("combined"),
      "{}: is not the log of a run; {}", log.path_.string(), remedy);
  content.erase("file_hashes");  // checksums of weights in logs of older versions; now in HashCache
  log.content_ = std::move(content);
  return log;
}

void RunLog::write() const {
  // Paths need not be UTF-8, JSON must be.
  write_file_atomically(path_, content_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void RunLog::add_start(const Json& start) {
  Json entry = start;
  entry["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  content_["starts"].push_back(std::move(entry));
}

std::string RunLog::last_version() const {
  if (starts().empty() || !starts().back().is_object()) return {};
  const Json version = starts().back().value("gainlens", Json());
  return version.is_string() ? version.get<std::string>() : std::string();
}

}  // namespace gainlens::runfile
