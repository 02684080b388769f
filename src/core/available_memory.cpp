#include "core/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

namespace gainlens {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return word;
}

std::optional<std::uint64_t> number_in_file(const fs::path& path) {
  const auto word = first_word(path);
  return word ? number_in(*word) : std::nullopt;
}

/// The number after `key` at the start of a line, as in "MemAvailable:   16384 kB" and "inactive_file 4096".
std::optional<std::uint64_t> number_after(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string line, word;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    if (words >> word && word == key) return words >> word ? number_in(word) : std::nullopt;
  }
  return std::nullopt;
}

/// The names that the two versions of cgroups have for the same numbers.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;  ///< in memory.stat, of the cgroup and those below it
};
constexpr CgroupFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupFiles version_2{"memory.max", "memory.current", "inactive_file"};

std::optional<std::uint64_t> left_in(const fs::path& folder, const CgroupFiles& files) {
  const auto limit_text = first_word(folder / files.limit);
  if (!limit_text || limit_text == "max") return unlimited;  // the root of all cgroups has no such file
  const auto limit = number_in(*limit_text);
  if (!limit) return std::nullopt;
  constexpr std::uint64_t max_of_any_machine = std::uint64_t{1} << 60;  // version 1 writes a number for "no limit"
  if (*limit >= max_of_any_machine) return unlimited;
  const auto usage = number_in_file(folder / files.usage);
  const auto reclaimable = number_after(folder / "memory.stat", files.reclaimable);
  if (!usage || !reclaimable) return std::nullopt;
  const std::uint64_t held = *usage - std::min(*reclaimable, *usage);
  return *limit - std::min(held, *limit);
}

/// The least of a cgroup and all above it. Folders that are not there are passed over: a container sees only its own
/// cgroup, at the root, and its path may be that of the machine outside.
std::optional<std::uint64_t> left_in_all(const fs::path& root, std::string_view path, const CgroupFiles& files) {
  fs::path folder = root;
  std::optional<std::uint64_t> least = left_in(folder, files);
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;  // of a cgroup outside this namespace
    folder /= part;
    const auto left = left_in(folder, files);
    if (!left || !least) return std::nullopt;
    least = std::min(*least, *left);
  }
  return least;
}

bool is_listed(std::string_view list, std::string_view word) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (list.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

/// What the lines "hierarchy:controllers:path" of /proc/self/cgroup leave. A system without cgroups has no such file.
std::optional<std::uint64_t> left_in_cgroups(const MemorySources& sources) {
  std::ifstream file(sources.proc / "self/cgroup");
  std::uint64_t least = unlimited;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) return std::nullopt;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    std::optional<std::uint64_t> left = unlimited;
    if (controllers.empty()) left = left_in_all(sources.cgroup, path, version_2);
    if (is_listed(controllers, "memory")) left = left_in_all(sources.cgroup / "memory", path, version_1);
    if (!left) return std::nullopt;
    least = std::min(least, *left);
  }
  return least;
}

/// What the limit of a resource leaves, of which /proc/self/statm counts the pages in column `column`.
std::optional<std::uint64_t> left_of(int resource, std::size_t column, const MemorySources& sources) {
  struct rlimit limit {};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY) return unlimited;
  std::ifstream file(sources.proc / "self/statm");
  std::string word;
  for (std::size_t i = 0; i <= column; ++i) {
    if (!(file >> word)) return std::nullopt;
  }
  const auto pages = number_in(word);
  if (!pages) return std::nullopt;
  const std::uint64_t used = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur);
}

std::optional<std::uint64_t> left_on_machine(const MemorySources& sources) {
  const auto kibibytes = number_after(sources.proc / "meminfo", "MemAvailable:");
  if (!kibibytes) return std::nullopt;
  return *kibibytes * 1024;
}

}  // namespace

std::optional<std::uint64_t> available_memory(const MemorySources& sources) {
  constexpr std::size_t size_column = 0, data_column = 5;
  std::uint64_t least = unlimited;
  for (const auto& left : {left_on_machine(sources), left_in_cgroups(sources), left_of(RLIMIT_AS, size_column, sources),
                           left_of(RLIMIT_DATA, data_column, sources)}) {
    if (!left) return std::nullopt;
    least = std::min(least, *left);
  }
  return least;
}

}  // namespace gainlens
