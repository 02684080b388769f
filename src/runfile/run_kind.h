#pragma once

#include "core/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace gainlens::runfile {

/// THE list of the kinds of runs, entry(NAME): what made a folder of results, and so what reads it. RunKind::NAME says
/// how its files show it (run_kind.cpp), NAME_inspection and NAME_commands what commands do with it (src/cli).
#define GAINLENS_RUN_KINDS(entry)                                                                                  \
  entry(sweep) entry(interventions) entry(patching) entry(experiment) entry(recommender_sweep) entry(recommenders) \
      entry(gate_arms) entry(language_training)

enum class RunKind {
#define GAINLENS_ENUMERATOR(kind) kind,
  GAINLENS_RUN_KINDS(GAINLENS_ENUMERATOR)
#undef GAINLENS_ENUMERATOR
};

/// How a kind of run shows itself in its files. A text is empty where the kind has no such mark.
struct RunMark {
  RunKind kind;
  std::string_view words;           ///< what such a run is: "a recommender run"
  std::string_view key = {};        ///< of request.json
  std::string_view format = {};     ///< `format` in request.json
  std::int64_t version = 0;         ///< the newest `version` beside this format
  std::string_view attribute = {};  ///< attribute `format` of run.h5
  std::string_view training = {};   ///< `kind` in training/request.json
  bool has_units = false;           ///< it is stored as units of work (run_store.h)
  bool has_trainings = false;       ///< it has folders ARM/seed-N or ARM/VARIANT/seed-N
  std::string_view command = {};    ///< what makes it, where a run.h5 may be missing: "gainlens train recommend"
  /// What a reader of sweeps answers, after "is a recommender run; ". Empty: it reads the request, and says what it is.
  std::string_view instead_of_sweep = {};
  /// What readers of other files answer that have such a run.h5. {} stands for what they need. Empty: its format.
  std::string_view instead_of_others = {};
};

/// How kinds show themselves.
std::span<const RunMark> run_marks();
const RunMark& mark_of(RunKind kind);

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

/// The mark of a run. Null: there is none, or one that identify() refuses.
const RunMark* mark_at(const std::filesystem::path& given);
/// Whether there is a run of this kind. False for what identify() refuses.
bool is_run_of(const std::filesystem::path& given, RunKind kind);

/// Refuses, for readers of sweeps, a run of another kind.
/// @throws InvalidArgument  it is the run of an experiment or of recommenders; the message names the commands that read
///     it. As identify()
void refuse_other_than_sweep(const std::filesystem::path& given);

}  // namespace gainlens::runfile
