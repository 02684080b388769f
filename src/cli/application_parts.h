#pragma once

#include "cli/global_options.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>

// What the two programs share (reading_application.h): the command line up to its subcommands, and how a program ends.
namespace gainlens::cli {

/// What a subcommand does once the whole command line has been read.
using Action = std::function<void()>;

/// A subcommand as the help of its application lists it.
struct Subcommand {
  std::string_view name;
  std::string_view description;
  bool on_gpu = false;  ///< whether it takes another --device than the CPU
  bool draws = false;   ///< whether something in it is drawn at random, so that it takes --seed
};

/// The subcommands of gainlens, in the order of its help.
std::span<const Subcommand> subcommands();
/// @throws InternalError  there is none
const Subcommand& subcommand_named(std::string_view name);

/// Adds a subcommand. Its help ends with the details (units, files, how it resumes), an example, and the exit status.
/// @param app      the application, or the subcommand that this one belongs to
/// @param example  a command that works as printed
/// @param details  lines that the caller has wrapped; may be empty
CLI::App* add_subcommand(CLI::App& app, const Subcommand& subcommand, const std::string& example,
                         const std::string& details = "");

/// Gives a new application its name, its help and its global options.
/// @param global   gets the options when the command line is parsed; outlives the application
/// @param version  the text of --version
void describe_application(CLI::App& app, GlobalOptions& global, const std::function<std::string()>& version);

/// @throws InvalidArgument  the working folder was deleted. Relative paths then lead nowhere, and oneMKL, a part of
///     libtorch, ends the process
void check_working_folder();

/// @param app  has parsed the command line
/// @throws InvalidArgument  --threads or --device is wrong, the subcommand computes on the CPU alone, or it draws
/// nothing
///     at random and --seed was given
void check_global_options(const CLI::App& app, const GlobalOptions& global);

std::string first_line(std::string_view text);

/// Prints the help or the version that the command line asks for.
/// @param help  what parsing has thrown
/// @throws RunFailed  as write_result()
void print_help(const CLI::App& app, const CLI::Success& help);

/// Runs it and prints every error as one line on stderr.
/// @returns the exit code of the program: 0 done, 1 the run failed, 2 the request or the input was wrong, 141 the
/// reader
///     of standard output has closed it
int exit_code_of(const std::function<void()>& run);

}  // namespace gainlens::cli
