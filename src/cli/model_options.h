#pragma once

#include "cli/application.h"
#include "hooks/hooked_model.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/load_decoder.h"
#include "recommend/recommender_checkpoint.h"
#include "sweep/token_source.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::cli {

/// Options of every command that runs a model over text.
struct TextOptions {
  std::string text;
  std::string tokens;
  std::string bos = "auto";

  /// @throws InvalidArgument  an unknown --bos policy
  data::BosPolicy policy() const;
  /// @throws InvalidArgument  as policy()
  sweep::TokenSourceOptions source() const;
};

/// The checkpoint, which is required.
/// @param also  what may be given besides: "; or .."
void add_model_option(CLI::App& command, std::string& model, const std::string& also = "");
void add_text_options(CLI::App& command, TextOptions& options);
void add_dtype_option(CLI::App& command, std::string& dtype);
void add_stream_weights(CLI::App& command, bool& stream_weights);

/// --targets of commands whose losses may be those of the last tokens alone.
void add_targets_option(CLI::App& command, std::optional<std::int64_t>& targets);
/// @returns  0: all tokens but the first
/// @throws InvalidArgument  below 1
std::int64_t chosen_targets(std::optional<std::int64_t> targets);

/// --prompt and --batch, of commands that run a model over prompts.
struct PromptOptions {
  std::optional<std::string> prompt;
  std::string batch;
};

/// @param batch_help  ends the help of --batch
void add_prompt_options(CLI::App& command, PromptOptions& options, const std::string& batch_help);

/// Where a prompt comes from.
struct PromptSource {
  sweep::TokenSourceOptions from;
  std::string where;  ///< the line of a batch, for messages; else empty
};

/// The prompts that are asked for: that of --prompt, --text or --tokens, or those of --batch.
/// @throws InvalidArgument  none or more than one of these options; a batch with a line that is no {"prompt": ".."}
///     (names the line)
std::vector<PromptSource> prompt_sources(const PromptOptions& options, const TextOptions& text);

/// Calls it. What is wrong with a line of a batch names the line.
void naming_the_line(const PromptSource& source, const std::function<void()>& read);

// The one place that asks whether files hold a decoder or a recommender. It knows both layers, so it is above them.

/// A model whose files have been found and described. One of the two members is there.
struct OpenedModel {
  std::optional<models::CheckpointSource> decoder;  ///< its weights are still in the files
  std::optional<recommend::RecommenderCheckpoint> recommender;
  std::vector<std::string> ignored_keys;

  /// The family of a decoder, or the backbone of a recommender: "gemma3".
  std::string family() const;
  /// Reads what has not been read yet. To be called once.
  /// @param dtype   of the computation
  /// @param device  of kernels::compute_device()
  /// @throws InvalidArgument  as models::load_decoder(); a recommender in another type than float32
  std::unique_ptr<hooks::HookedModel> load(at::ScalarType dtype, at::Device device);
};

/// Opens a decoder (a folder in Hugging Face layout, its name on the Hub if it is in the cache, a GGUF file or a folder
/// with one) or a recommender of whatever backbone.
/// @param ignored_keys  models::IgnoredKeys, of decoders alone
/// @throws InvalidArgument  as models::open_checkpoint() and recommend::open_recommender()
OpenedModel open_model(const std::filesystem::path& path, const std::vector<std::string>& ignored_keys = {});

/// The sites of a model. Of a decoder only the configuration is read.
/// @throws InvalidArgument  as open_model()
std::vector<hooks::SiteShape> sites_of_model(const std::filesystem::path& path,
                                             const std::vector<std::string>& ignored_keys = {});

/// Where the checkpoint of a language model lies: a folder or a GGUF file.
/// @param model    a path, or the name of a model in the cache of Hugging Face
/// @param command  for messages
/// @throws InvalidArgument  as formats::locate_checkpoint() and refuse_run_for_checkpoint(); a recommender
std::filesystem::path locate_language_model(const std::string& model, std::string_view command);

/// What commands that run a language model are told of it.
struct ModelArguments {
  std::string model;
  std::vector<std::string> ignored_config_keys;
  std::string dtype = "float32";
  bool stream_weights = false, allow_extrapolation = false;

  /// @throws InvalidArgument  as models::parse_dtype() and kernels::compute_device()
  models::LoadOptions load_options(const GlobalOptions& global) const;
  /// Gives them to a measurement.
  /// @param command  for messages
  /// @throws InvalidArgument  as locate_language_model() and load_options()
  template <typename Options>
  void give(Options& options, const GlobalOptions& global, std::string_view command) const {
    options.model = locate_language_model(model, command);
    models::LoadOptions load = load_options(global);
    options.ignored_config_keys = std::move(load.ignored_keys);
    options.dtype = load.dtype;
    options.device = load.device;
    options.stream_weights = load.stream;
    options.quiet = global.quiet;
  }
};

}  // namespace gainlens::cli
