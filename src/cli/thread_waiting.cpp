// On a busy machine, threads of OpenMP that wait go to sleep soon.
//
// A thread of libgomp that waits for others spins for milliseconds before it sleeps. On an idle machine that is the
// fastest way. If other programs need the processors too, it takes them from the threads that it waits for, and a
// training takes several times as long. So the program looks whether the machine is busy when it starts. If it is, the
// program asks for a short spin. libgomp reads its settings when it is loaded, before main(). So the program adds them
// to its environment and executes itself once more, before any library is initialised, which takes some 20 ms. It stays
// the same process, with the same arguments, open files and signals. Settings of the user have precedence.
//
// The C library is not initialised yet either. This file uses only the stack, plain functions and system calls, and it
// is compiled without sanitizers.

#ifdef __linux__

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace {

/// Settings of libgomp and of other OpenMP libraries. If the user gives one, the program changes nothing. They also
/// show that the program has been executed once more.
constexpr std::string_view spins = "GOMP_SPINCOUNT=", policy = "OMP_WAIT_POLICY=", block_time = "KMP_BLOCKTIME=";
constexpr std::string_view number_of_threads = "OMP_NUM_THREADS=";

// Some 20 microseconds, for regions that follow each other at once.
char short_spin[] = "GOMP_SPINCOUNT=300";
char passive[] = "OMP_WAIT_POLICY=passive";

/// The number at the start of a text; 0 if there is none.
int number_at(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// How many other threads of the machine run or want to run at this moment; 0 if that is not known.
int others_running() {
  const int file = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> content{};
  const ssize_t size = ::read(file, content.data(), content.size());
  ::close(file);
  if (size <= 0) return 0;
  // "0.20 0.18 0.12 1/80 11206": the fourth number counts this thread too.
  std::string_view text(content.data(), static_cast<std::size_t>(size));
  for (int field = 0; field < 3; ++field)
    text.remove_prefix(text.find(' ') == text.npos ? text.size() : text.find(' ') + 1);
  return number_at(text) - 1;
}

/// Whether there are too few processors for `threads` and the other programs, at most of five moments.
bool is_machine_busy(int processors, int threads) {
  int busy = 0;
  for (int moment = 1; moment <= 5; ++moment) {
    if (others_running() + threads > processors) ++busy;
    if (busy == 3 || moment - busy == 3) break;
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return busy == 3;
}

void choose_waiting(int, char** argv, char** environment) {
  static std::array<char*, 8192> extended;
  std::size_t count = 0;
  cpu_set_t set;
  const int processors = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  int threads = processors;
  for (; environment[count] != nullptr; ++count) {
    const std::string_view variable = environment[count];
    if (variable.starts_with(spins) || variable.starts_with(policy) || variable.starts_with(block_time)) return;
    if (variable.starts_with(number_of_threads)) threads = number_at(variable.substr(number_of_threads.size()));
    if (count + 3 >= extended.size()) return;
    extended[count] = environment[count];
  }
  extended[count] = short_spin;
  extended[count + 1] = passive;
  if (processors == 0 || threads <= 1 || !is_machine_busy(processors, threads)) return;
  // Without a base address of the loader, the loader itself was called with this program as its argument.
  if (::getauxval(AT_BASE) == 0) return;
  std::array<char, PATH_MAX> program{};
  if (::readlink("/proc/self/exe", program.data(), program.size() - 1) <= 0) return;
  ::execve(program.data(), argv, extended.data());  // returns only if it fails: then the threads spin
}

using Initialiser = void (*)(int, char**, char**);
[[gnu::used, gnu::section(".preinit_array")]] const Initialiser initialiser = choose_waiting;

}  // namespace

#endif
