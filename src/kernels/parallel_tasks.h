#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gainlens::kernels {

/// How many workers run_tasks uses. Each worker needs a workspace of its own.
///
/// There are at least two. at::parallel_for opens a parallel region only for two or more ranges. Inside a parallel
/// region the BLAS uses a single thread. Without the region it could split a product over threads, and the bits would
/// depend on their number.
inline std::int64_t task_workers() {
  return std::max(2, at::get_num_threads());
}

/// Runs the tasks 0..count-1. Each worker calls work = make(worker) once in its thread, then work(task) for each of its
/// tasks, and destroys `work` in the same thread. A worker takes the next task when it is free, so put long tasks
/// first. Chance decides which worker gets which task: results must not depend on it.
template <typename Make>
void run_tasks_with(std::int64_t count, const Make& make) {
  std::atomic<std::int64_t> next = 0;
  at::parallel_for(0, task_workers(), 1, [&](std::int64_t first_worker, std::int64_t last_worker) {
    for (std::int64_t worker = first_worker; worker < last_worker; ++worker) {
      std::int64_t task = next++;
      if (task >= count) continue;
      auto work = make(worker);
      for (; task < count; task = next++) work(task);
    }
  });
}

/// Calls work(worker, task) once for each task, as run_tasks_with.
template <typename Work>
void run_tasks(std::int64_t count, const Work& work) {
  run_tasks_with(count,
                 [&work](std::int64_t worker) { return [&work, worker](std::int64_t task) { work(worker, task); }; });
}

}  // namespace gainlens::kernels
