#pragma once

#include <c10/core/CPUAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace gainlens::kernels::testing {

/// Counts the bytes that libtorch's CPU allocator holds for this thread, and their peak.
class CountedMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    held_ += bytes;
    peak_ = std::max(peak_.load(), held_.load());
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t peak() const { return peak_; }

 private:
  std::atomic<std::int64_t> held_ = 0, peak_ = 0;
};

/// Peak memory of libtorch during `work` in bytes, minus its memory before.
template <typename Work>
std::int64_t peak_bytes_of(const Work& work) {
  const auto counter = std::make_shared<CountedMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return counter->peak();
}

}  // namespace gainlens::kernels::testing
