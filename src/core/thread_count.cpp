#include "core/thread_count.h"

#include "core/check.h"
#include "core/counted.h"

#include <algorithm>
#include <thread>

namespace gainlens {

std::int64_t most_threads() {
  return std::max<std::int64_t>(64, std::int64_t{4} * std::thread::hardware_concurrency());
}

void check_threads(std::int64_t threads) {
  CHECK(threads >= 0 && threads <= most_threads(),
        "--threads: {}; must be between 1 and {} on this machine, which has {}, or 0 for all cores", threads,
        most_threads(), counted(std::thread::hardware_concurrency(), "core"));
}

}  // namespace gainlens
