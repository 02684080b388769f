#pragma once

#include "core/environment.h"

#include <cstdint>
#include <optional>

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

}  // namespace gainlens::runfile
