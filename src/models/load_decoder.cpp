#include "models/load_decoder.h"

#include "models/decoder.h"

#include <utility>

namespace gainlens::models {

std::unique_ptr<hooks::HookedModel> load_decoder(const std::filesystem::path& path, const LoadOptions& options) {
  Checkpoint checkpoint = load_checkpoint(path, options);
  return std::make_unique<Decoder>(std::move(checkpoint.config), std::move(checkpoint.weights));
}

}  // namespace gainlens::models
