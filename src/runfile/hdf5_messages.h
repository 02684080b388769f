#pragma once

#include "runfile/hdf5_file_bytes.h"

#include <cstdint>
#include <optional>
#include <vector>

// The messages of an object header that gainlens writes (section IV.A.2 of the HDF5 file format specification 3.0).
// Each function throws Error if the bytes are not exactly one such message.

namespace gainlens::runfile::hdf5 {

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
DenseAddresses checked_link_info(Bytes message);
DenseAddresses checked_attribute_info(Bytes message);

}  // namespace gainlens::runfile::hdf5
