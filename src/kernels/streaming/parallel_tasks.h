#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gainlens::kernels {

/// How many workers run_tasks uses: each needs a workspace of its own.
///
/// Two at least: at::parallel_for opens a parallel region only for two ranges or more, and inside one the BLAS runs on
/// a single thread. Without the region it might split a product over threads, and the bits would depend on their
/// number.
inline std::int64_t task_workers() {
  return std::max(2, at::get_num_threads());
}

/// Calls work(worker, task) once for each task 0..count-1. Workers take the next task when they are free, so put the
/// heavy ones first. Which worker gets which task is left to chance: a result must not depend on it.
template <typename Work>
void run_tasks(std::int64_t count, const Work& work) {
  std::atomic<std::int64_t> next = 0;
  at::parallel_for(0, task_workers(), 1, [&](std::int64_t first_worker, std::int64_t last_worker) {
    for (std::int64_t worker = first_worker; worker < last_worker; ++worker) {
      for (std::int64_t task = next++; task < count; task = next++) work(worker, task);
    }
  });
}

}  // namespace gainlens::kernels
