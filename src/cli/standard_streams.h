#pragma once

namespace gainlens::cli {

/// Before anything else is opened: descriptors 0 to 2 that the program was started without become /dev/null, so that no
/// file of ours takes such a number and gets what is printed. Of standard output it cannot be written to: results that
/// nobody can see are a failure. Writing to a pipe that nobody reads is an error from here on and not the end of the
/// program: a sweep goes on without its progress.
void prepare_standard_streams();

}  // namespace gainlens::cli
