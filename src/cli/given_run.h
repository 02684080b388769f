#pragma once

#include "reports/made_report.h"
#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"
#include "runfile/run_store.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// The format of a file that a command writes.
struct WrittenFormat {
  std::string_view name;    ///< "CSV"
  std::string_view suffix;  ///< ".csv"
};
inline constexpr WrittenFormat csv_file = {"CSV", ".csv"}, text_file = {"plain text", ".txt"},
                               safetensors_file = {"safetensors", ".safetensors"};

/// Refuses a file that a command would write where something is, and a place where it cannot be.
/// @param option  that names it, such as "--csv"
/// @throws InvalidArgument  its name ends as that of a file of another format does; something has this name, also a
///     link to nothing; its folder is missing or no folder, or as check_holds_no_run()
void check_is_new_file(const std::string& option, const std::filesystem::path& file, const WrittenFormat& format);

/// Likewise, for commands that write a run of their own there.
/// @throws InvalidArgument  it lies among the checkpoints of a run of recommenders or of another experiment; its name
///     ends as that of a file does, and there is no such folder
void check_can_be_run_folder(const std::filesystem::path& folder, const std::string& option = "--out");

/// Likewise, for commands that train a model further.
/// @param folder  that --out names
/// @param model   of one file: the files beside it are not its own
/// @throws InvalidArgument  it is the folder of the model, or lies in it
void check_lies_outside_model(const std::filesystem::path& folder, const std::filesystem::path& model);

/// The run of which a folder, ARM/seed-N or ARM/VARIANT/seed-N, is one training. Nothing: it is none.
std::optional<std::filesystem::path> run_of_training(const std::filesystem::path& folder);

/// A run whose files may have changed.
struct DoubtfulRun {
  GivenRun run;
  std::string changed;  ///< why its files are not those that were written; empty: as for GivenRun
};

/// Opens a run though its files differ from their checksums, to say so. Of a sweep that was stopped, what is there.
/// @throws InvalidArgument  as open_given_run() for everything else
DoubtfulRun open_doubtful_run(const std::filesystem::path& path);

/// Opens the run that was given on the command line.
/// @param path  run folder or run.h5
/// @throws InvalidArgument  it is a checkpoint (the message says how to sweep it); as runfile::prove_run() and
///     RunReader::open()
GivenRun open_given_run(const std::filesystem::path& path);

/// Likewise, or the finished chunks of a sweep that was stopped; then a warning says how many are there.
GivenRun open_begun_run(const std::filesystem::path& path);

/// What stands above numbers of --validation.
inline constexpr std::string_view validation_items_note =
    "Ranks are those of the validation items (--validation), by which the epoch of each checkpoint was chosen.";

/// A run of trainings, with what could not be proven of it.
/// @tparam Run  runfile::RecommendRun or runfile::ExperimentRun
template <typename Run>
struct ProvenTrainings {
  std::shared_ptr<const Run> run;
  std::vector<std::string> unproven = {};  ///< a sentence each
};

/// Reads the recommender run that was given on the command line, and proves the files of its trainings.
/// @throws InvalidArgument  as recommend::read_proven_run()
ProvenTrainings<runfile::RecommendRun> prove_recommend_run(const std::filesystem::path& path);

/// The same for the run of another experiment.
/// @throws InvalidArgument  as experiment::read_proven_run()
ProvenTrainings<runfile::ExperimentRun> prove_experiment_run(const std::filesystem::path& path);

/// Whether there is the run of an experiment, of other models than recommenders.
bool is_experiment_run(const std::filesystem::path& path);

/// Warns of what could not be proven of a run. A command that may still refuse calls it afterwards: a refusal is one
/// line.
/// @param path  of the run, as the user gave it
void tell_unproven(const std::filesystem::path& path, std::span<const std::string> sentences);
/// Proves a run that is stored as units (runfile::prove_store), and warns where its result has no checksum.
/// @returns  for the reader of the run
runfile::Proof tell_proof(const std::filesystem::path& path, const std::string& result);

/// Both, for recommenders.
/// @throws InvalidArgument  as prove_recommend_run()
std::shared_ptr<const runfile::RecommendRun> given_recommend_run(const std::filesystem::path& path);

/// Refuses, before hours of work, a folder for the report of a measuring command that holds a run, because a report
/// replaces what lies in its folder, and one that cannot be written.
/// @param run  the folder of the run; may be empty
void check_report_folder(const std::string& report, const std::string& run);
/// Says which figures were left out.
void tell_left_out(const reports::WrittenReport& written);
/// @throws RunFailed  a section could not be made; the others are written
void check_made(const reports::WrittenReport& written, std::string_view command);
/// Both, and between them where the page is, all on stderr.
/// @throws RunFailed  as check_made()
void tell_written(const reports::WrittenReport& written, const std::filesystem::path& out, std::string_view command);

}  // namespace gainlens::cli
