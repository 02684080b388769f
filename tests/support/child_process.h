#pragma once

#include "core/error.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <functional>

namespace gainlens::testing {

/// Runs `body` in a child process and returns its wait status. The child's exit code is what the body returns; 1 after
/// RunFailed, 2 after another exception.
/// @param kill_after  microseconds until the child is killed; 0: it is not
inline int in_child(const std::function<int()>& body, useconds_t kill_after = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (const RunFailed&) {
      code = 1;
    } catch (const std::exception&) {
      code = 2;
    }
    ::_exit(code);
  }
  if (kill_after > 0) {
    ::usleep(kill_after);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace gainlens::testing
