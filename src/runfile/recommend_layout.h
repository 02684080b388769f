#pragma once

#include "runfile/hdf5.h"

#include <cstdint>
#include <vector>

namespace gainlens::runfile {

/// The dataset /rank of a recommender run: its type, shape and chunks.
hdf5::Layout rank_layout(std::int64_t arms, std::int64_t seeds, std::int64_t users);

/// Whether the dataset of the seeds is int64; else it is uint64.
bool seeds_fit_int64(const std::vector<std::uint64_t>& seeds);

}  // namespace gainlens::runfile
