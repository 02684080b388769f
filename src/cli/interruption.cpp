#include "cli/interruption.h"

#include "core/check.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string_view>

namespace gainlens::cli {
namespace {

/// What the handler reads: it may run at any moment, so everything is made before.
struct Told {
  const char* file;
  std::string_view continued, lost;
};
std::atomic<const Told*> told = nullptr;
Told command_told;

constexpr std::array signals = {SIGINT, SIGTERM};

/// Only functions that a handler may call. SA_RESETHAND has put the usual action back, so the signal ends the program.
void tell_and_end(int signal) {
  if (const Told* const now = told.load()) {
    const std::string_view text = ::access(now->file, F_OK) == 0 ? now->continued : now->lost;
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  }
  ::raise(signal);
}

}  // namespace

ScopedInterruption::ScopedInterruption(const std::filesystem::path& out, const std::string& what, bool tells,
                                       const std::filesystem::path& begun) {
  if (!tells) return;
  ASSERT(told.load() == nullptr, "two interruptions at a time");
  if (!out.empty()) file_ = (out / begun).string();
  const std::string start = ::isatty(STDERR_FILENO) == 1 ? "\n" : "";  // a bar, or ^C, stands on the line
  continued_ = fmt::format("{}gainlens: interrupted: {} keeps {}; the same command continues there\n", start,
                           printable(out.string()), what);
  lost_ = start + "gainlens: interrupted: nothing was kept; the same command begins again\n";
  command_told = {file_.c_str(), continued_, lost_};
  told = &command_told;
  for (const int signal : signals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup
    struct sigaction action {};
    action.sa_handler = tell_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

ScopedInterruption::~ScopedInterruption() {
  told = nullptr;
}

}  // namespace gainlens::cli
