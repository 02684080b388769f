#pragma once

#include "support/free_port.h"

#include <string>

namespace gainlens::testing {

/// A line for a shell that starts a command as two processes of one training. What the second one prints goes into
/// other.out and other.err, the errors of the first into leader.err.
/// @param after  runs in the shell with their ids in $leader and $other
inline std::string as_two_processes(const std::string& command, const std::string& after) {
  return "export MASTER_ADDR=127.0.0.1 MASTER_PORT=" + free_port() + " WORLD_SIZE=2; RANK=1 " + command +
         " > other.out 2> other.err & other=$!; RANK=0 " + command + " 2> leader.err & leader=$!; " + after;
}

/// For as_two_processes(): the exit code is 0 if both have succeeded.
inline constexpr const char* wait_for_both = "wait $leader; first=$?; wait $other; second=$?; exit $((first + second))";

}  // namespace gainlens::testing
