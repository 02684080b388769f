#pragma once

#include "runfile/hdf5_file_bytes.h"

#include <functional>

namespace gainlens::runfile::hdf5 {

/// Objects with more than 8 links or attributes keep them in a fractal heap, and find them by a B-tree (version 2).
/// Numbers of both as libhdf5 writes them; section III.A.2 and III.G of the HDF5 file format specification 3.0.
struct DenseStorage {
  unsigned id_bytes = 0;             ///< of the name of an entry in the heap
  unsigned offset_bytes = 0;         ///< of a place in the heap
  std::uint64_t smallest_block = 0;  ///< of the heap, in bytes
  unsigned char tree_type = 0;
  unsigned record_bytes = 0;  ///< of the tree
  unsigned id_at = 0;         ///< where in a record the name of the entry begins
};
inline constexpr DenseStorage dense_links{7, 4, 512, 5, 11, 4};
inline constexpr DenseStorage dense_attributes{8, 5, 1024, 8, 17, 0};

/// Calls `use` with every entry of a storage. What libhdf5 follows on its way to an entry is checked before: all blocks
/// of the heap, all nodes of the tree, and that each entry lies in one block.
/// @param heap, tree  addresses
/// @param read  reads a piece of the file; it bounds the work, as it sees how much was read
/// @throws Error  another form, or a piece outside the file or its block
void for_each_dense_entry(const DenseStorage& kind, std::uint64_t heap, std::uint64_t tree,
                          const std::function<std::vector<unsigned char>(std::uint64_t address, std::uint64_t count,
                                                                         std::string_view what)>& read,
                          const std::function<void(Bytes)>& use);

}  // namespace gainlens::runfile::hdf5
