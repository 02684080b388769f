#pragma once

#include "runfile/process_group.h"
#include "training/replicas.h"

#include <chrono>
#include <memory>

namespace gainlens::training {

/// How long a process waits for the others to start, and after which time it says so on standard error.
struct MeetingTimes {
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  std::chrono::milliseconds notice = std::chrono::seconds(5);
};

/// Whether this build can connect processes: it was compiled with the headers of gloo.
bool can_connect_replicas();

/// Connects the processes of a group through libtorch's c10d, with gloo. Processes that torchrun has started use the
/// store of its agent. Else rank 0 listens on MASTER_ADDR:MASTER_PORT. GLOO_SOCKET_IFNAME names the network interface,
/// as for PyTorch. A group of one process needs none of that.
/// @throws InvalidArgument  MASTER_ADDR or MASTER_PORT is not set or wrong; this build has no gloo
/// @throws RunFailed        the others did not start in time
std::unique_ptr<Replicas> connect_replicas(const runfile::ProcessGroup& group, const Environment& environment,
                                           const MeetingTimes& times = {});

}  // namespace gainlens::training
