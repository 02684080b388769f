#include "core/thread_count.h"

#include "core/check.h"
#include "core/counted.h"

#include <sys/mman.h>

#include <algorithm>
#include <latch>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace gainlens {

std::int64_t max_threads() {
  return std::max<std::int64_t>(64, std::int64_t{4} * std::thread::hardware_concurrency());
}

void check_threads(std::int64_t threads) {
  CHECK(threads >= 0 && threads <= max_threads(),
        "--threads: {}; must be between 1 and {} on this machine, which has {}, or 0 for all cores", threads,
        max_threads(), counted(std::thread::hardware_concurrency(), "core"));
}

void check_threads_can_start(std::int64_t threads) {
  const std::int64_t all = 2 * (threads - 1);  // the calling thread is one of each pool
  std::latch end(1);
  std::vector<std::thread> started;
  std::string refusal;
  try {
    while (std::ssize(started) < all) started.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error& error) {
    refusal = error.code().message();
  } catch (const std::bad_alloc&) {
    refusal = "no memory";
  }
  // What runs in a thread cannot say that its stack or its own variables found no memory: it ends by a signal.
  constexpr std::size_t reserve = std::size_t{4} << 20;
  if (refusal.empty()) {
    void* const room = ::mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
      refusal = "no memory";
    else
      ::munmap(room, reserve);
  }
  end.count_down();
  for (std::thread& thread : started) thread.join();
  if (!refusal.empty())
    throw_run_failed(
        "--threads: {} could not be started: {}; raise the limits of memory and processes (ulimit -v, ulimit -u), or "
        "take fewer --threads",
        counted(threads, "thread"), refusal);
}

}  // namespace gainlens
