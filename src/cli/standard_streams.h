#pragma once

namespace gainlens::cli {

/// Must be called before any file is opened. Opens each of the descriptors 0 to 2 that is closed on /dev/null.
/// Otherwise a file of the program could get such a number and receive the printed text. A closed standard output is
/// opened for reading only, so that printing results fails: nobody could see them.
///
/// Also ignores SIGPIPE. Writing to a pipe without a reader is then an error and does not end the program: a sweep goes
/// on without its progress.
void prepare_standard_streams();

}  // namespace gainlens::cli
