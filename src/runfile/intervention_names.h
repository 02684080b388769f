#pragma once

#include <filesystem>
#include <optional>
#include <string>

// The file names.json of a run of `gainlens intervene`: what people call what was run. No number depends on it, and it
// is not compared when a run is continued.

namespace gainlens::runfile {

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
