#pragma once

#include "core/environment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gainlens::runfile {

/// The processes that share one run, as their launcher numbers them.
struct ProcessGroup {
  std::int64_t rank = 0;                   ///< of this process, in [0, size)
  std::int64_t size = 1;                   ///< 1: this process alone
  std::optional<std::int64_t> local_rank;  ///< among the processes of this machine
};

/// Reads what torchrun (RANK, WORLD_SIZE, LOCAL_RANK) or SLURM's srun (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID) has
/// set. Without these variables there is one process. SLURM with one task, or without a process id (the shell of an
/// allocation), also means one process. If torchrun itself runs under srun (TORCHELASTIC_RUN_ID is set), torchrun
/// numbers the processes.
/// @throws InvalidArgument  a variable that is not a number, out of range, or set without its partner; the variables of
///     torchrun and SLURM disagree
ProcessGroup read_process_group(const Environment& environment);
ProcessGroup read_process_group();  ///< of this process's environment

/// Splits pieces of work among processes. The longest pieces come first. Each piece goes to the process with the least
/// work so far (the lowest rank of equals). The same costs give the same shares everywhere. No process gets more than
/// 4/3 of the largest share of the best split.
///
/// @param costs  of each piece, in any unit proportional to time
/// @param size   number of processes
/// @returns      [size] indices into `costs`, ascending; each index once
/// Source: Graham 1969, "Bounds on multiprocessing timing anomalies" (longest processing time first).
std::vector<std::vector<std::size_t>> balanced_shares(std::span<const double> costs, std::int64_t size);

}  // namespace gainlens::runfile
