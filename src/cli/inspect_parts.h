#pragma once

#include "analyses/checks/unit_checks.h"
#include "cli/application_parts.h"
#include "cli/findings.h"
#include "data/interactions.h"
#include "experiment/job.h"
#include "models/decoder/decoder_config.h"
#include "runfile/run_kind.h"
#include "runfile/trained_run.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::cli {

/// How a checkpoint is read, and the use for which its memory is estimated.
struct MemoryQuestion {
  std::string length;  ///< context length in tokens, for example "8k"; empty: the model's number of positions
  std::string dtype;   ///< dtype of the computation
  std::vector<std::string> ignored_config_keys;  ///< of config.json, see models::IgnoredKeys
};

/// The findings that need libtorch. A program without it hands over to one that has it instead of returning.
struct InspectComputations {
  /// Adds the time of a sweep. The question has a length.
  std::function<void(const models::DecoderConfig&, const MemoryQuestion&, Findings&)> add_time;
  /// inspect_recommender()
  std::function<void(const std::filesystem::path&, Findings&)> inspect_recommender;
};

/// Adds the subcommand `inspect`.
void add_inspect_with(CLI::App& app, const GlobalOptions& global, Action& action,
                      const InspectComputations& computations);

/// Adds the findings about a checkpoint. Stops at the first error.
/// @throws InvalidArgument  the error that makes the checkpoint unusable
void inspect_checkpoint(const std::filesystem::path& path, const MemoryQuestion& question,
                        const InspectComputations& computations, Findings& findings);

/// The context length of the estimates: that of the question, else the model's number of positions.
/// @throws InvalidArgument  the question's length is not a number of tokens
std::int64_t inspected_length(const models::DecoderConfig& config, const MemoryQuestion& question);

/// Adds the memory of a sweep at inspected_length() and, where it is more than there is, what makes it fit. A number of
/// bytes that is not known, because the system does not tell, is null.
void add_memory(const models::DecoderConfig& config, const MemoryQuestion& question,
                std::optional<std::uint64_t> available, Findings& findings);

/// Why no test of `sink-vs-k` can decide about this model; empty if the test within layers can.
std::string sink_test_doubt(const models::DecoderConfig& config);

/// Adds the time of a sweep at the question's length, at the speed of this machine. It is measured, which takes about
/// half a second.
void add_expected_time(const models::DecoderConfig& config, const MemoryQuestion& question, Findings& findings);

/// Does what inspect_checkpoint() does, for a recommender that `train recommend` wrote (recommend::is_recommender). It
/// reads the weights.
void inspect_recommender(const std::filesystem::path& path, Findings& findings);

/// What `inspect` does with a kind of run.
struct RunInspection {
  runfile::RunKind kind;
  void (*inspect)(const std::filesystem::path& run, Findings& findings);  ///< as inspect_checkpoint()
};
/// That of a kind. Null: there is none; the folder is inspected as what else it holds.
const RunInspection* inspection_of(runfile::RunKind kind);

/// Adds the arms, seeds and metrics of the run of an experiment, and how many trainings of each arm are finished.
/// @returns  the number of finished trainings
std::int64_t add_trainings(const runfile::TrainedRun& run, const std::vector<std::string>& metrics, Findings& findings);

/// Adds what was compared of a run that is stored as units.
/// @param unproven  as runfile::prove_store() returns
void add_store_proof(const std::string& result, const std::string& unproven, Findings& findings);

/// Adds what there is of a run of units without a result: its family, and how much is measured.
/// @returns  whether it has no result
/// @throws InvalidArgument  it is being written; a unit is damaged
bool add_begun_units(const std::filesystem::path& run, const std::string& result,
                     analyses::CheckedUnits (*read)(const std::filesystem::path&), Findings& findings);

/// Adds which trainings of a run without run.h5 are finished.
/// @param prove  proves the files of a training that has a result. @throws InvalidArgument  they have changed
/// @returns  whether there is no run.h5
/// @throws InvalidArgument  the run is being written; no training is finished; as `prove`
bool add_begun_trainings(const std::filesystem::path& run, const std::function<void(const experiment::Job&)>& prove,
                         Findings& findings);

/// Whether a path is a file that can only be a data set: it is neither a run nor weights nor a configuration.
bool looks_like_data_set(const std::filesystem::path& path);

/// Does what inspect_checkpoint() does, for interactions of users with items and their leave-one-out split.
void inspect_data(const std::filesystem::path& path, const data::InteractionOptions& options, Findings& findings);

}  // namespace gainlens::cli
