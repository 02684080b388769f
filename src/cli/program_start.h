#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens::cli {

/// Installs a handler for SIGBUS. A mapped file may be shortened while the program reads it. The handler then prints
/// one line on stderr and ends the program with exit code 2. Other causes of SIGBUS are left to the system.
void explain_bus_errors();

/// Makes an exception that nobody catches end the program with one line on stderr and exit code 1, and not by a
/// signal. Needs no memory. gainlens-compute calls it before its libraries are initialised: those of libtorch throw
/// std::bad_alloc where memory is short.
void explain_uncaught_exceptions();

/// Must be called before any file is opened. Opens each of the descriptors 0 to 2 that is closed on /dev/null.
/// Otherwise a file of the program could get such a number and receive the printed text. A closed standard output is
/// opened for reading only, so that printing results fails: nobody could see them.
///
/// Also ignores SIGPIPE. Writing to a pipe without a reader is then an error and does not end the program: a sweep goes
/// on without its progress.
void prepare_standard_streams();

/// Replaces this process by the program with every subcommand, `gainlens-compute`, which lies in the folder of this
/// one. Process id, arguments, environment and open files stay.
/// @param arguments  of main(): ends with a null pointer
/// @throws InvalidArgument  the working folder does not exist any more
/// @throws RunFailed  the program is not there, is damaged, is of another build than this one, is this one, or cannot
///     be started
[[noreturn]] void become_compute_program(char* const* arguments);

/// What a program's file says of itself, in an ELF section of its own.
struct ProgramStamp {
  std::string program;  ///< "gainlens" or "gainlens-compute"
  std::string build;    ///< version and a hash of the sources: "0.5.0 0123456789abcdef"

  bool operator==(const ProgramStamp&) const = default;
};

/// The stamp of the program that runs.
ProgramStamp own_stamp();

/// The stamp of a program's file, which need not be a program.
/// @throws RunFailed  it cannot be read, is cut short, or has no stamp
ProgramStamp stamp_of(const std::filesystem::path& program);

}  // namespace gainlens::cli
