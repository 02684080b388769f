#pragma once

#include "hooks/hooked_model.h"
#include "models/checkpoint/checkpoint_source.h"
#include "recommend/recommender_checkpoint.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The one place that asks whether files hold a decoder or a recommender. It knows both layers, so it is above them.

namespace gainlens::cli {

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

}  // namespace gainlens::cli
