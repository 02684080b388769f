#pragma once

namespace gainlens::cli {

/// Replaces this process by the program with every subcommand, `gainlens-compute`, which lies in the folder of this
/// one. Process id, arguments, environment and open files stay.
/// @param arguments  of main(): ends with a null pointer
/// @throws InvalidArgument  the working folder does not exist any more
/// @throws RunFailed  the program is not there, is damaged, is of another build than this one, is this one, or cannot
/// be
///     started
[[noreturn]] void become_compute_program(char* const* arguments);

}  // namespace gainlens::cli
