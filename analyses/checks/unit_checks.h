#pragma once

#include "analyses/checks/check.h"
#include "runfile/intervention_run.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A run of `intervene`, `inactive-heads` or `gate-arms` that is checked, finished or not.
struct CheckedUnits {
  std::size_t units = 0;             ///< files in its folder `units`
  std::vector<std::string> damaged;  ///< one message for each of them that is not as it was written
  std::string part;                  ///< what is measured: "each arm on each document"
  std::size_t parts = 0;             ///< how many the request asks for
  std::size_t missing = 0;           ///< those that are in no unit
  std::string result;                ///< file with the result: "gate-arms.json"
  bool finished = false;             ///< whether it is there
  bool without_units = false;        ///< it was passed on without its folder `units`
  std::string unreadable;            ///< why it cannot be read
  std::string changed;   ///< why its files are not those that manifest.jsonl lists; empty: nothing speaks against it
  std::string unproven;  ///< why the result was compared with no checksum, a sentence; empty: it was
  /// Where it is not what the units make, as a JSON pointer; empty: nowhere. Nothing: not compared.
  std::optional<std::string> difference;
  std::size_t documents = 0;         ///< 0: the run is of two prompts
  std::size_t fewest_documents = 0;  ///< that intervals need
  std::optional<bool> as_declared;   ///< nothing: such a run declares nothing
};

/// Reads every unit of a run, and compares the result with what they make.
/// @throws InvalidArgument  its request.json is damaged
CheckedUnits read_checked_gate_arms(const std::filesystem::path& folder);
CheckedUnits read_checked_interventions(const std::filesystem::path& folder);
CheckedUnits read_checked_patches(const std::filesystem::path& folder);

/// "5 of 12 parts (each arm on each document) are measured".
std::string measured_parts(const CheckedUnits& run);

/// A run of interventions that has no result yet.
struct BegunInterventions {
  CheckedUnits units;
  /// The documents on which everything is measured. The units do not say which control belongs to an intervention.
  runfile::InterventionRun run;
};
/// @throws InvalidArgument  the run is being written; a unit or the request is damaged; no document has everything
BegunInterventions read_begun_interventions(const std::filesystem::path& folder);

/// THE list, in the order in which it is printed. A test compares docs/analyses/check.md with it.
std::span<const Check<CheckedUnits>> unit_checks();

}  // namespace gainlens::analyses
