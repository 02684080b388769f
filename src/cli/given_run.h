#pragma once

#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <filesystem>
#include <memory>
#include <string>

namespace gainlens::cli {

/// A run whose files were compared with their checksums before it was opened.
struct GivenRun {
  runfile::RunProof proof;
  runfile::RunReader reader;
};

/// Refuses to write other files beside those of a run.
/// @param folder  that the option names, or that holds the file that it names; may be absent
/// @throws InvalidArgument  it holds a run, finished or not, or the shards of one; it lies among the checkpoints of a
///     run of trainings
void check_holds_no_run(const std::filesystem::path& folder, const std::string& option = "--out");

/// Refuses a file that a command would write where something is, and a place where it cannot be.
/// @param option  that names it, such as "--csv"
/// @throws InvalidArgument  something has this name, also a link to nothing; its folder is missing or no folder, or as
///     check_holds_no_run()
void check_is_new_file(const std::string& option, const std::filesystem::path& file);

/// Likewise, for commands that write a run of their own there.
/// @throws InvalidArgument  it lies among the checkpoints of a run of recommenders or of another experiment
void check_lies_in_no_arm(const std::filesystem::path& folder, const std::string& option = "--out");

/// Likewise, for commands that train a model further.
/// @param folder  that --out names
/// @param model   of one file: the files beside it are not its own
/// @throws InvalidArgument  it is the folder of the model, or lies in it
void check_lies_outside_model(const std::filesystem::path& folder, const std::filesystem::path& model);

/// Refuses a recommender run where one of its checkpoints is needed.
/// @throws InvalidArgument  names the folder of a training, if there is one
void refuse_run_for_checkpoint(const std::filesystem::path& path);

/// A run whose files may have changed.
struct DoubtfulRun {
  GivenRun run;
  std::string changed;  ///< why its files are not those that were written; empty: as for GivenRun
};

/// Opens a run though its files differ from their checksums, to say so.
/// @throws InvalidArgument  as open_given_run() for everything else
DoubtfulRun open_doubtful_run(const std::filesystem::path& path);

/// Opens the run that was given on the command line.
/// @param path  run folder or run.h5
/// @throws InvalidArgument  it is a checkpoint (the message says how to sweep it); as runfile::prove_run() and
///     RunReader::open()
GivenRun open_given_run(const std::filesystem::path& path);

/// Reads the recommender run that was given on the command line, and proves the files of its trainings. Says on
/// standard error what was not compared.
/// @throws InvalidArgument  as recommend::read_proven_run()
std::shared_ptr<const runfile::RecommendRun> given_recommend_run(const std::filesystem::path& path);

/// The same for the run of another experiment, without a note on what was not proven.
/// @throws InvalidArgument  as experiment::read_proven_run()
std::shared_ptr<const runfile::ExperimentRun> given_experiment_run(const std::filesystem::path& path);

}  // namespace gainlens::cli
