#include "cli/application.h"
#include "cli/program_start.h"
#include "core/block_cache.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdio>
#include <cstdlib>

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

/// Lets tensors of 1 MiB or more take their memory from a BlockCache (core/block_cache.h), as long as the program runs.
/// Every layer allocates and frees tensors of tens of megabytes. The C library would either get each of them anew from
/// the system, which clears it page by page, or keep all of them, in pieces that do not fit the next tensor: then the
/// process needs half as much again as its tensors. Called once, before the first tensor is made.
[[maybe_unused]] void keep_tensor_memory() {
  static auto* const memory = new TensorMemory;
  c10::SetCPUAllocator(memory, /*priority=*/1);
}

}  // namespace
}  // namespace gainlens::cli

int main(int argc, char** argv) {
  gainlens::cli::prepare_standard_streams();
#ifndef __SANITIZE_ADDRESS__  // it would not see a use of a freed tensor
  gainlens::cli::keep_tensor_memory();
#endif
  gainlens::cli::explain_bus_errors();
  const int code = gainlens::cli::run_application(argc, argv);
  // All files are written and closed by now. The destructors of libtorch's globals would only take a tenth of a second.
  std::fflush(nullptr);
  std::_Exit(code);
}
