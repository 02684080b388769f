#include "cli/tensor_memory.h"

#include "core/block_cache.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace gainlens::cli {
namespace {

constexpr std::size_t min_bytes = std::size_t{1} << 20;

/// Never destroyed: tensors in globals of libtorch may outlive every other object.
BlockCache& blocks() {
  static auto* const cache = new BlockCache;
  return *cache;
}

void free_memory(void* memory) {
  if (!blocks().give(memory)) c10::GetDefaultCPUAllocator()->raw_deallocate(memory);
}

class TensorMemory : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = bytes < min_bytes ? nullptr : blocks().take(bytes);
    // The default allocator knows how to say that there is no memory.
    if (block == nullptr) block = c10::GetDefaultCPUAllocator()->raw_allocate(bytes);
    return {block, block, &free_memory, at::Device(at::kCPU)};
  }
  /// libtorch frees memory of any size by this function if it keeps no DataPtr (in bfloat16 products).
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void keep_tensor_memory() {
  static auto* const memory = new TensorMemory;
  c10::SetCPUAllocator(memory, /*priority=*/1);
}

}  // namespace gainlens::cli
