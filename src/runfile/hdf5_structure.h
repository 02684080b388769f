#pragma once

#include "runfile/hdf5_detail.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace gainlens::runfile::hdf5 {

/// Checks what libhdf5 reads in order to find and open the objects of an untrusted file, before it does: superblock,
/// every object that can be reached by hard links, with all messages of its header, the blocks and trees that hold
/// links and the root's attributes, and the index of chunks. libhdf5 1.10 trusts the sizes in them: a wrong one lets it
/// read or write outside its buffers. Only the forms are accepted that gainlens has ever written: no data in other
/// files or in the header, no virtual datasets, no filter but ours, no variable-length fill value.
///
/// Not read by libhdf5 afterwards, and so checked where it is read: the content of datasets. read() and read_box() take
/// contiguous numbers from where this function found them in the file; texts (hdf5_text.cpp) and chunks
/// (hdf5_chunks.cpp) are read by ourselves.
/// Source: HDF5 file format specification, version 3.0.
/// @throws Error  another form, or a piece that does not lie where it must
void check_structure(const FileBytes& file);

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

// The messages of an object header that gainlens writes (section IV.A.2 of the HDF5 file format specification 3.0).
// Each function throws Error if the bytes are not exactly one such message.

/// The sizes of a dataspace; none for one value.
std::vector<std::uint64_t> checked_dataspace(Bytes message);

enum class TypeClass { number, text, reference, variable_length, compound };
struct StoredType {
  TypeClass kind = TypeClass::number;
  std::uint64_t bytes = 0;  ///< of one value in the file
};
/// Numbers of 1 to 8 bytes, texts of one size, references to objects, and variable-length texts and references. A
/// compound is named and not looked into: nothing of that type is read.
StoredType checked_type(Bytes message);

void check_fill_value(Bytes message, const StoredType& type);
/// Shuffle, deflate and Fletcher's checksum, in this order.
void check_filters(Bytes message, const StoredType& type);
/// Contiguous, or chunked with an index of one chunk or a fixed array.
/// @param filtered  the dataset has filters
void check_layout(Bytes message, const std::vector<std::uint64_t>& shape, const StoredType& type, bool filtered,
                  const FileBytes& file);
/// An attribute with its value.
void check_attribute(Bytes message);
/// The address that a hard link leads to; nothing for another link, which is never followed.
std::optional<std::uint64_t> checked_link(Bytes message);

/// Where links or attributes stand if there are many.
struct DenseAddresses {
  std::uint64_t heap = no_address, tree = no_address;
};
/// @param what  names the message in messages: "the list of links"
DenseAddresses checked_dense_addresses(Bytes message, std::string_view what);

}  // namespace gainlens::runfile::hdf5
