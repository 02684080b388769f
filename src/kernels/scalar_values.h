#pragma once

#include "core/query_scalars.h"

#include <limits>

namespace gainlens::kernels {

/// The scalars of one query (core/query_scalars.h); the fields of QueryStatistics with the same names hold them for all
/// queries. Needs no libtorch.
struct QueryScalars {
#define GAINLENS_SCALAR(name, ...) double name = std::numeric_limits<double>::quiet_NaN();
  GAINLENS_QUERY_SCALARS(GAINLENS_SCALAR)
#undef GAINLENS_SCALAR
};

}  // namespace gainlens::kernels
