#pragma once

#include "kernels/instruction_limit.h"

// Highway compiles vector code once for each instruction set, and chooses one at run time. A file of vector code fills
// a table of its functions for each instruction set; the choice is made when a table is asked for.

// The compiler must know the size of a vector, since the kernels hold arrays of them. Include this header before
// Highway.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

/// HWY_DYNAMIC_DISPATCH within the limit of the environment.
#define GAINLENS_DISPATCH(function) (gainlens::kernels::instruction_limit(), HWY_DYNAMIC_DISPATCH(function))
