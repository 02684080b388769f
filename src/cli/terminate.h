#pragma once

namespace gainlens::cli {

/// Makes an exception that nobody catches end the program with one line on stderr and exit code 1, and not by a
/// signal. Needs no memory. gainlens-compute calls it before its libraries are initialised: those of libtorch throw
/// std::bad_alloc where memory is short.
void explain_uncaught_exceptions();

}  // namespace gainlens::cli
