#pragma once

#include "core/json.h"

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace gainlens::runfile {

/// What made a folder of results, and so what reads it.
enum class RunKind {
  sweep,
  recommender_sweep,
  recommenders,
  experiment,
  interventions,
  patching,
  gate_arms,
  language_training,
};

/// How a kind of run shows itself in its files. A text is empty where the kind has no such mark.
struct RunMark {
  RunKind kind;
  std::string_view words;           ///< what such a run is: "a recommender run"
  std::string_view key = {};        ///< of request.json
  std::string_view format = {};     ///< `format` in request.json
  std::string_view attribute = {};  ///< attribute `format` of run.h5
  std::string_view training = {};   ///< `kind` in training/request.json
  /// What a reader of sweeps answers, after "is a recommender run; ". Empty: it reads the request, and says what it is.
  std::string_view instead_of_sweep = {};
};

/// THE list of kinds.
std::span<const RunMark> run_marks();
/// What such a run is: "a recommender run".
std::string_view words_of(RunKind kind);

/// A run at a path. It is not proven, and may be damaged or not finished.
struct FoundRun {
  std::filesystem::path folder;  ///< that holds it; absolute, without links
  RunKind kind;
  Json request;  ///< null where request.json is missing or damaged
};

/// What kind of run is at a path. The request and the attribute `format` of run.h5 are read, and nothing is hashed. A
/// run folder and its run.h5 give the same answer. What has the files of a run and tells no kind is taken for a sweep,
/// whose reader says what is wrong with it.
/// @returns nothing: there is no run
/// @throws InvalidArgument  it is of two kinds at once, or of a kind that is not known
std::optional<FoundRun> identify(const std::filesystem::path& given, std::span<const RunMark> marks = run_marks());

/// Whether there is a run of one of these kinds. False for what identify() refuses.
bool is_run_of(const std::filesystem::path& given, std::initializer_list<RunKind> kinds);

/// Refuses, for readers of sweeps, a run of another kind.
/// @throws InvalidArgument  it is the run of an experiment or of recommenders; the message names the commands that read
///     it. As identify()
void refuse_other_than_sweep(const std::filesystem::path& given);

}  // namespace gainlens::runfile
