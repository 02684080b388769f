#pragma once

#include "runfile/hdf5_file_bytes.h"

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

}  // namespace gainlens::runfile::hdf5
