#include "cli/program_start.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace gainlens::cli {
namespace {

constexpr char message[] =
    "gainlens: error: a mapped file was shortened while it was read, or its disk failed; run the command again and do "
    "not change model or data files while it runs\n";

/// Uses only calls that are safe in a signal handler.
void on_bus_error(int signal_number, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {  // BUS_ADRERR: the file has no page for this address
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);  // takes effect when this handler returns
    return;
  }
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, message, sizeof message - 1);
  ::_exit(2);
}

}  // namespace

void prepare_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // open() takes the lowest free number. All lower numbers are open by now.
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond ulimit -f is then a failed write, with a message
}

void explain_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gainlens::cli
