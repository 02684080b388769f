#include "runfile/process_group.h"

#include "core/check.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace gainlens::runfile {
namespace {

constexpr std::int64_t max_processes = 65536;

/// How one launcher calls its variables.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
};
constexpr Launcher torchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr Launcher slurm = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"};

/// A number in [low, high]; empty where the variable is not set.
std::optional<std::int64_t> read(const Environment& environment, const char* name, std::int64_t low,
                                 std::int64_t high) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  CHECK(error == std::errc() && rest == end && value >= low && value <= high,
        "{}: '{}' in the environment; must be a whole number from {} to {}, or not be set for a single process", name,
        printable(*text, 40), low, high);
  return value;
}

/// @pre both variables are set
ProcessGroup read(const Environment& environment, const Launcher& launcher) {
  ProcessGroup group;
  group.size = *read(environment, launcher.size, 1, max_processes);
  group.rank = *read(environment, launcher.rank, 0, group.size - 1);
  group.local_rank = read(environment, launcher.local_rank, 0, group.size - 1);
  return group;
}

std::optional<ProcessGroup> read_torchrun(const Environment& environment) {
  const bool rank = environment(torchrun.rank).has_value(), size = environment(torchrun.size).has_value();
  CHECK(rank == size, "{}: is set in the environment and {} is not; set both, or neither for a single process",
        rank ? torchrun.rank : torchrun.size, rank ? torchrun.size : torchrun.rank);
  if (!rank) return std::nullopt;
  return read(environment, torchrun);
}

/// Empty if SLURM has started one task: then SLURM does not say which processes share the work.
std::optional<ProcessGroup> read_slurm(const Environment& environment) {
  if (!environment(slurm.rank)) return std::nullopt;  // the shell of an allocation: no task has been started
  if (!environment(slurm.size)) {                     // a batch script without srun, which has number 0
    CHECK(*read(environment, slurm.rank, 0, max_processes) == 0,
          "{}: '{}' in the environment without {}; start the processes with srun", slurm.rank,
          printable(*environment(slurm.rank), 40), slurm.size);
    return std::nullopt;
  }
  const ProcessGroup group = read(environment, slurm);
  if (group.size == 1) return std::nullopt;
  return group;
}

}  // namespace

ProcessGroup read_process_group(const Environment& environment) {
  const auto by_torchrun = read_torchrun(environment);
  if (by_torchrun && environment("TORCHELASTIC_RUN_ID")) return *by_torchrun;
  const auto by_slurm = read_slurm(environment);
  if (by_torchrun && by_slurm) {
    CHECK(by_torchrun->rank == by_slurm->rank && by_torchrun->size == by_slurm->size,
          "RANK: this is process {} of {} by RANK and WORLD_SIZE, and {} of {} by SLURM_PROCID and SLURM_NTASKS; unset "
          "the wrong pair",
          by_torchrun->rank, by_torchrun->size, by_slurm->rank, by_slurm->size);
  }
  return by_torchrun ? *by_torchrun : by_slurm.value_or(ProcessGroup{});
}

ProcessGroup read_process_group() {
  return read_process_group(process_environment());
}

std::vector<std::vector<std::size_t>> balanced_shares(std::span<const double> costs, std::int64_t size) {
  ASSERT(size >= 1, "work split among {} processes", size);
  std::vector<std::size_t> longest_first(costs.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  std::vector<std::vector<std::size_t>> shares(static_cast<std::size_t>(size));
  std::vector<double> loads(shares.size(), 0.0);
  for (const std::size_t piece : longest_first) {
    const auto rank = static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
    shares[rank].push_back(piece);
    loads[rank] += costs[piece];
  }
  for (auto& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

}  // namespace gainlens::runfile
