// Threads of OpenMP that wait do not spin for long.
//
// By default libgomp's threads spin for milliseconds before they sleep. If other programs use the machine too, they
// take the processors from the threads that they wait for, and a training takes several times as long. libgomp reads
// its settings when it is loaded, before main(). So the program adds them to its environment and executes itself once
// more, before any library is initialised, which takes milliseconds. It stays the same process, with the same
// arguments, open files and signals. OMP_WAIT_POLICY and GOMP_SPINCOUNT of the user have precedence.

#ifdef __linux__

#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace {

constexpr std::string_view policy = "OMP_WAIT_POLICY=", spins = "GOMP_SPINCOUNT=";

// Read by libgomp. A short spin bridges the gap between two parallel regions that follow each other at once.
char bounded_spins[] = "GOMP_SPINCOUNT=1000";
// Read by other OpenMP libraries. It also marks that the program has been executed once more.
char passive[] = "OMP_WAIT_POLICY=passive";

/// Runs before the constructors of all libraries, so it uses system calls and the stack only.
__attribute__((no_sanitize("address", "undefined"))) void execute_with_short_waits(int, char** argv,
                                                                                   char** environment) {
  static std::array<char*, 8192> extended;
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    const std::string_view variable = environment[count];
    if (variable.starts_with(policy) || variable.starts_with(spins) || count + 3 >= extended.size()) return;
    extended[count] = environment[count];
  }
  extended[count] = bounded_spins;
  extended[count + 1] = passive;
  // Without a base address of the loader, the loader itself was called with this program as its argument.
  if (::getauxval(AT_BASE) == 0) return;
  std::array<char, PATH_MAX> program{};
  if (::readlink("/proc/self/exe", program.data(), program.size() - 1) <= 0) return;
  ::execve(program.data(), argv, extended.data());  // returns only if it fails: then the default waiting remains
}

using Initialiser = void (*)(int, char**, char**);
[[gnu::used, gnu::section(".preinit_array")]] const Initialiser initialiser = execute_with_short_waits;

}  // namespace

#endif
