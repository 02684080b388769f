#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gainlens::analyses {

/// Calls work(task) once for each task from 0, on several threads. The order is left to chance.
/// @throws  what a task throws; other tasks may then not have run
template <typename Work>
void on_threads(std::size_t tasks, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex guard;
  const auto take = [&] {
    try {
      for (std::size_t task = next++; task < tasks; task = next++) work(task);
    } catch (...) {
      const std::lock_guard lock(guard);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < std::min(threads, tasks); ++i) workers.emplace_back(take);
    take();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gainlens::analyses
