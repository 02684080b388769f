#include "core/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace gainlens {
namespace {

constexpr std::size_t granule = std::size_t{64} << 10;  // sizes are multiples of it, so that more blocks fit again

/// Freed blocks are kept until all blocks together exceed the peak of those in use by one part in so many. Blocks of
/// different sizes never fit each other exactly: with no such room, the pages of every layer's tensors would go back to
/// the system and be fetched again, which costs a sixth of a sweep's time.
constexpr std::size_t room_divisor = 16;

constexpr std::uintptr_t smallest_page = 4096;  // of any system

std::byte* map_block(std::size_t size) {
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

}  // namespace

BlockCache::~BlockCache() {
  release(usage_.kept);
}

void* BlockCache::take(std::size_t bytes) {
  const std::size_t size = (bytes + granule - 1) / granule * granule;
  if (size < bytes) return nullptr;
  const std::lock_guard lock(mutex_);
  auto best = kept_.end();  // the smallest that is large enough
  for (auto block = kept_.begin(); block != kept_.end(); ++block) {
    if (block->second >= size && (best == kept_.end() || block->second < best->second)) best = block;
  }
  std::byte* address = nullptr;
  if (best != kept_.end()) {
    address = best->first;
    if (best->second > size) kept_.emplace(address + size, best->second - size);
    kept_.erase(best);
    usage_.kept -= size;
  } else {
    const std::size_t peak = std::max(usage_.peak, usage_.in_use + size), most = peak + peak / room_divisor;
    const std::size_t wanted = usage_.in_use + usage_.kept + size;
    if (wanted > most) release((wanted - most + granule - 1) / granule * granule);
    address = map_block(size);
    if (address == nullptr) {
      release(usage_.kept);
      address = map_block(size);
    }
    if (address == nullptr) return nullptr;
  }
  in_use_.emplace(address, size);
  usage_.in_use += size;
  usage_.peak = std::max(usage_.peak, usage_.in_use);
  return address;
}

bool BlockCache::give(void* block) noexcept {
  if (reinterpret_cast<std::uintptr_t>(block) % smallest_page != 0) return false;  // without waiting for the lock
  const std::lock_guard lock(mutex_);
  const auto found = in_use_.find(static_cast<std::byte*>(block));
  if (found == in_use_.end()) return false;
  usage_.in_use -= found->second;
  usage_.kept += found->second;
  auto joined = kept_.insert(in_use_.extract(found)).position;
  const auto next = std::next(joined);
  if (next != kept_.end() && joined->first + joined->second == next->first) {
    joined->second += next->second;
    kept_.erase(next);
  }
  if (joined == kept_.begin()) return true;
  const auto previous = std::prev(joined);
  if (previous->first + previous->second == joined->first) {
    previous->second += joined->second;
    kept_.erase(joined);
  }
  return true;
}

BlockCache::Usage BlockCache::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

/// Gives so many bytes of kept blocks back to the system, from the smallest blocks on: these fit the fewest new ones.
void BlockCache::release(std::size_t bytes) {
  while (bytes > 0 && !kept_.empty()) {
    const auto smallest =
        std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::size_t part = std::min(bytes, smallest->second);  // its end
    ::munmap(smallest->first + smallest->second - part, part);
    smallest->second -= part;
    if (smallest->second == 0) kept_.erase(smallest);
    usage_.kept -= part;
    bytes -= part;
  }
}

}  // namespace gainlens
