#pragma once

#include "analyses/checks/unit_checks.h"
#include "cli/application.h"
#include "core/json.h"
#include "data/interactions.h"
#include "models/decoder/decoder_config.h"
#include "runfile/run_kind.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {

/// The findings of `inspect`, in order: lines for the terminal, and one JSON object.
class Findings {
 public:
  /// @param name  name of the line; with _ in place of spaces it is the JSON key
  void add(const std::string& name, const std::string& text, const Json& value);
  void add(const std::string& name, const std::string& text) { add(name, text, text); }
  /// Adds a finding to the JSON object only.
  void add_json(const std::string& key, const Json& value) { json_[key] = value; }
  /// Adds a line for the terminal only.
  void add_line(const std::string& name, const std::string& text) { lines_.emplace_back(name, text); }

  /// Adds the last finding: whether the checkpoint or run is usable.
  /// @param reason  why it is not usable; empty if it is usable
  void conclude(const std::string& reason);

  /// How what is inspected can be used, as the end of "yes ...": "in bfloat16; ...".
  void usable_how(std::string how) { how_ = std::move(how); }

  void print(bool json) const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
  OrderedJson json_ = OrderedJson::object();
  std::string how_;
};

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

/// What `inspect` does with a run, as inspect_checkpoint(). Null: the folder is inspected as what else it holds.
using RunInspection = void (*)(const std::filesystem::path& run, Findings& findings);
/// NAME_inspection of each kind, in a file of the kind.
#define GAINLENS_INSPECTION(kind) extern const RunInspection kind##_inspection;
GAINLENS_RUN_KINDS(GAINLENS_INSPECTION)
#undef GAINLENS_INSPECTION

/// Whether a path is a file that can only be a data set: it is neither a run nor weights nor a configuration.
bool looks_like_data_set(const std::filesystem::path& path);

/// Does what inspect_checkpoint() does, for interactions of users with items and their leave-one-out split.
void inspect_data(const std::filesystem::path& path, const data::InteractionOptions& options, Findings& findings);

}  // namespace gainlens::cli
