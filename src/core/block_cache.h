#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace gainlens {

/// Large blocks of memory. Freed blocks are kept, joined with their neighbours, and given out again, whole or in parts,
/// so that the system need not clear their pages anew. Blocks in use and kept blocks together never exceed the largest
/// amount that was in use at one time by more than a sixteenth: if no kept block is large enough for a new one, others
/// go back to the system first. So the process needs at its peak little more than what is in use at the peak. All
/// functions may be called from several threads.
class BlockCache {
 public:
  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  /// Gives kept blocks back to the system. Blocks in use stay.
  ~BlockCache();

  /// A block of at least `bytes` bytes (> 0), at the start of a page. Its content is not defined. Null if the system
  /// has no more memory; kept blocks were then given back first.
  void* take(std::size_t bytes);
  /// Frees a block. @returns false, and does nothing, if the address is not that of a block in use
  bool give(void* block) noexcept;

  struct Usage {
    std::size_t in_use = 0;  ///< bytes of blocks that were taken and not given
    std::size_t kept = 0;    ///< bytes of freed blocks that the process still has
    std::size_t peak = 0;    ///< largest `in_use` so far
  };
  Usage usage() const;

 private:
  void release(std::size_t bytes);

  mutable std::mutex mutex_;
  std::map<std::byte*, std::size_t> in_use_, kept_;  // address -> size; no two kept blocks are neighbours
  Usage usage_;
};

}  // namespace gainlens
