#include "models/checkpoint/load_decoder.h"

#include "core/check.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/checkpoint_tensors.h"
#include "models/checkpoint/stored_tensors.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/decoder.h"

#include <utility>

namespace gainlens::models {
namespace {

/// Reads a layer from the mapped files each time it is asked for.
class MappedLayers : public LayerSource {
 public:
  MappedLayers(CheckpointSource source, const ComputePlace& place) : source_(std::move(source)), place_(place) {}
  LayerWeights load(std::int64_t layer) override { return load_layer(source_, layer, place_); }

 private:
  CheckpointSource source_;
  ComputePlace place_;
};

}  // namespace

std::unique_ptr<hooks::HookedModel> load_decoder(const std::filesystem::path& path, const LoadOptions& options) {
  return load_own_decoder(path, options);
}

std::unique_ptr<Decoder> load_own_decoder(const std::filesystem::path& path, const LoadOptions& options) {
  CHECK(options.device.is_cpu() || !read_decoder_config(path, options.ignored_keys).filter,
        "--device: a decoder with the filter is run on the CPU; use --device cpu");
  if (!options.stream) {
    Checkpoint checkpoint = load_checkpoint(path, options);
    return std::make_unique<Decoder>(std::move(checkpoint.config), std::move(checkpoint.weights));
  }
  dtype_name(options.dtype);  // refuses a dtype that models are not computed in
  CheckpointSource source = open_checkpoint(path, options.ignored_keys);
  check_tensors(source);
  DecoderConfig config = source.config;
  DecoderWeights outer = load_outer(source, {options.dtype, options.device});
  return std::make_unique<Decoder>(
      std::move(config), std::move(outer),
      std::make_unique<MappedLayers>(std::move(source), ComputePlace{options.dtype, options.device}));
}

}  // namespace gainlens::models
