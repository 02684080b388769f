#pragma once

#include "runfile/hdf5_file_bytes.h"

#include <string>
#include <string_view>
#include <vector>

// What the parts of the layer over libhdf5 share.

namespace gainlens::runfile::hdf5 {

/// Prepares the library; to be called before every other of its functions.
void prepare_library();
/// @throws Error  `status` is negative: `action` failed
void check(herr_t status, std::string_view action);

std::vector<hsize_t> extents(const Shape& shape);
/// "[2, 3]".
std::string shown(const Shape& shape);
Handle dataspace(const Shape& shape);
Handle space_of(const Handle& dataset);
Shape shape_of(const Handle& dataset, const std::string& name);
Handle type_of(const Handle& dataset);
Handle creation_of(const Handle& dataset);

}  // namespace gainlens::runfile::hdf5
