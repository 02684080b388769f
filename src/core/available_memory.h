#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace gainlens {

/// Where the system tells about memory. Tests give folders of their own.
struct MemorySources {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

/// How many bytes of memory this process can still take without swapping. It is the least of
/// - MemAvailable of /proc/meminfo: what the machine has free, or can free without swapping
/// - limit - usage of the process's cgroup and of each cgroup above it (version 1 and 2). File pages that were not used
///   lately (inactive_file) do not count as usage, because the system drops them first
/// - what the process's own limits leave (RLIMIT_AS: `ulimit -v`, RLIMIT_DATA: `ulimit -d`)
///
/// Empty if one of these numbers cannot be read, for example because the system is not Linux. A cgroup or a process
/// without a limit counts as having room for everything.
std::optional<std::uint64_t> available_memory(const MemorySources& sources = {});

}  // namespace gainlens
