#pragma once

#include "core/intervention_effect.h"
#include "core/json.h"
#include "runfile/run_store.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Files of a run of `gainlens intervene`: docs/run-file.md.

namespace gainlens::runfile {

inline constexpr std::string_view intervention_run_format = "gainlens-interventions";
inline constexpr std::int64_t intervention_run_version = 1;
inline constexpr const char* intervention_result = "intervene.json";

/// An intervention, as a result names it.
struct InterventionArm {
  std::string text;
  std::optional<std::size_t> control;  ///< the arm with random other heads
  std::string no_control;              ///< why there is none

  friend bool operator==(const InterventionArm&, const InterventionArm&) = default;
};

/// What interventions did in each document.
struct InterventionRun {
  Json request = Json::object();                         ///< what determines the numbers
  std::vector<InterventionArm> arms;                     ///< those that were asked for, then controls that were not
  std::size_t asked = 0;                                 ///< how many were asked for
  std::vector<double> native;                            ///< [document] nll of the model as it is
  std::vector<double> native_answers = {};               ///< [document] logit difference; empty: not asked for
  std::vector<std::vector<InterventionEffect>> effects;  ///< [arm][document]

  std::size_t documents() const { return native.size(); }
};

/// What is computed and stored at once: the arms of one document that start in one layer.
struct InterventionUnit {
  std::vector<std::size_t> arms;  ///< their places among those of the run
  double native = 0;
  std::vector<InterventionEffect> effects;  ///< [arm of the unit]
  std::optional<double> answer = {};        ///< of the model as it is
};

/// The name of a unit in a RunStore, `document-D-layer-L`. The embedding is layer -1.
std::string unit_name(std::size_t document, std::int64_t layer);
/// A unit as it is stored.
Json to_json(const InterventionUnit& unit);
/// @throws InvalidArgument, Json::exception  another form, or a number that is not finite
InterventionUnit intervention_unit_from(const Json& json);

/// What `intervene.json` holds.
Json to_json(const InterventionRun& run);
/// Writes `intervene.json` of a run folder as store_result().
void write_intervention_run(const std::filesystem::path& folder, const InterventionRun& run);

/// Reads a finished run.
/// @throws InvalidArgument  as read_result()
InterventionRun read_intervention_run(const std::filesystem::path& folder, Proof proof = Proof::by_reader);

// The file names.json of a run of `gainlens intervene`: what people call what was run. No number depends on it, and it
// is not compared when a run is continued.

inline constexpr const char* intervention_names_file = "names.json";

/// Texts from outside: printable() before they are shown.
struct InterventionNames {
  std::string model;       ///< name of its file or folder
  std::string text = {};   ///< name of its file; of a run on a text
  std::string clean = {};  ///< the prompt without BOS; of a run on two prompts, empty where ids were given
  std::string corrupt = {};

  friend bool operator==(const InterventionNames&, const InterventionNames&) = default;
};

/// "gemma-3-270m" of "models/gemma-3-270m.gguf"; the name of a folder also where a slash ends the path.
std::string name_of_model(const std::filesystem::path& model);

/// The text of such a file.
std::string names_text(const InterventionNames& names);

/// Nothing: the run has none, as those of earlier versions.
/// @throws InvalidArgument  damaged
std::optional<InterventionNames> read_intervention_names(const std::filesystem::path& folder);

}  // namespace gainlens::runfile
