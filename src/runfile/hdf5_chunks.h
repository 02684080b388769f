#pragma once

#include "runfile/hdf5.h"

namespace gainlens::runfile::hdf5 {

/// Reads the box of size `count` at `offset` of a dataset in chunks, and converts it to `memory_type`, whose values are
/// at least as large as those in the file. Chunks that were never written hold the fill value.
///
/// libhdf5 never unpacks a chunk of an untrusted file: its filters give a content of any size, and what reads it
/// expects that of the chunk's shape. Here a chunk is unpacked into memory of exactly that size, and must fill it.
/// @param data  room for the product of `count` values of `memory_type`
/// @throws Error  a chunk does not lie in the file; its checksum is another; it unpacks to more or fewer bytes
void read_chunked_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data);

}  // namespace gainlens::runfile::hdf5
