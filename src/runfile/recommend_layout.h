#pragma once

#include "runfile/hdf5.h"

#include <cstdint>

namespace gainlens::runfile {

/// The dataset /rank of a recommender run: its type, shape and chunks.
hdf5::Layout rank_layout(std::int64_t arms, std::int64_t seeds, std::int64_t users);

}  // namespace gainlens::runfile
