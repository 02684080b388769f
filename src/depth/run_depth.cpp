#include "depth/run_depth.h"

#include "core/progress.h"
#include "core/quantity.h"
#include "core/sha256.h"
#include "depth/measure_depth.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/checkpoint_tensors.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/decoder.h"
#include "runfile/run_proof.h"

#include <ATen/core/TensorBody.h>

#include <fmt/format.h>

namespace gainlens::depth {

runfile::DepthRun run_depth(const DepthRequest& request) {
  runfile::DepthRun run{.request = sha256_file(request.folder / "request.json")};
  // One that an earlier version wrote has no checksum, and is measured again: nothing proves what it holds.
  if (std::filesystem::exists(runfile::checksum_file_of(request.folder / runfile::depth_file))) {
    if (auto stored = runfile::read_depth_run(request.folder); stored && stored->request == run.request)
      return std::move(*stored);
  }
  const models::CheckpointSource source = models::open_checkpoint(request.checkpoint, request.ignored_config_keys);
  check_carries(source.config, request.layers, "--depth-precision");
  models::LoadOptions load;
  load.dtype = request.dtype;
  load.stream = request.stream_weights;
  load.first_layers = request.layers;
  load.ignored_keys = request.ignored_config_keys;
  const std::unique_ptr<hooks::HookedModel> model = models::load_decoder(request.checkpoint, load);
  const LayerLoader weights = [&](std::int64_t layer) { return models::load_layer(source, layer, {at::kDouble}); };

  double total = 0;
  for (const data::Chunk& chunk : request.chunks) total += static_cast<double>(chunk.length);
  Progress progress("depth", total, "tokens", request.quiet);
  for (const data::Chunk& chunk : request.chunks) {
    const DepthOptions options{
        .layers = request.layers, .truth = chunk.sample == 0, .allow_extrapolation = request.allow_extrapolation};
    run.chunks.push_back(measure_depth(*model, source.config, weights, chunk, options));
    const auto tokens = static_cast<double>(chunk.length);
    progress.advance(tokens, tokens, fmt::format("T {} sample {}", format_count(chunk.length), chunk.sample));
  }
  runfile::write_depth_run(request.folder, run);
  return run;
}

}  // namespace gainlens::depth
