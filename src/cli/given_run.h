#pragma once

#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <filesystem>

namespace gainlens::cli {

/// A run whose files were compared with their checksums before it was opened.
struct GivenRun {
  runfile::RunProof proof;
  runfile::RunReader reader;
};

/// Refuses to write other files beside those of a run.
/// @param folder  that the option --out names, or that holds the file that it names; may be absent
/// @throws InvalidArgument  it holds a run, finished or not, or the shards of one
void check_holds_no_run(const std::filesystem::path& folder);

/// Opens the run that was given on the command line.
/// @param path  run folder or run.h5
/// @throws InvalidArgument  it is a checkpoint (the message says how to sweep it); as runfile::prove_run() and
///     RunReader::open()
GivenRun open_given_run(const std::filesystem::path& path);

}  // namespace gainlens::cli
