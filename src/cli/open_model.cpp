#include "cli/open_model.h"

#include "cli/given_run.h"
#include "cli/ignored_keys.h"
#include "core/check.h"
#include "experiment/proven_result.h"
#include "formats/hub_cache.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/decoder_sites.h"
#include "recommend/recommender_files.h"

namespace gainlens::cli {
namespace {

recommend::RecommenderCheckpoint open_recommender(const std::filesystem::path& path,
                                                  const std::vector<std::string>& ignored_keys) {
  refuse_ignored_keys(ignored_keys, "a recommender");
  return recommend::open_recommender(path);
}

}  // namespace

std::string OpenedModel::family() const {
  return decoder ? decoder->config.family : recommender->model->kind().name;
}

std::unique_ptr<hooks::HookedModel> OpenedModel::load(at::ScalarType dtype, at::Device device) {
  if (recommender) {
    CHECK(dtype == at::kFloat, "--dtype: recommenders are run in float32");
    CHECK(device.is_cpu(), "--device: recommenders are run on the CPU; use --device cpu");
    return std::move(recommender->model);
  }
  models::LoadOptions options;
  options.dtype = dtype;
  options.device = device;
  options.ignored_keys = ignored_keys;
  return models::load_decoder(decoder->path, options);
}

OpenedModel open_model(const std::filesystem::path& path, const std::vector<std::string>& ignored_keys) {
  const std::filesystem::path located = formats::locate_checkpoint(path);
  refuse_run_for_checkpoint(located);
  OpenedModel opened;
  opened.ignored_keys = ignored_keys;
  if (recommend::is_recommender(located)) {
    opened.recommender = open_recommender(located, ignored_keys);
  } else {
    experiment::prove_checkpoint_files(located);  // a recommender proves its own
    opened.decoder = models::open_checkpoint(located, ignored_keys);
  }
  return opened;
}

std::vector<hooks::SiteShape> sites_of_model(const std::filesystem::path& path,
                                             const std::vector<std::string>& ignored_keys) {
  const std::filesystem::path located = formats::locate_checkpoint(path);
  refuse_run_for_checkpoint(located);
  if (recommend::is_recommender(located)) return open_recommender(located, ignored_keys).model->sites();
  return models::decoder_sites(models::read_decoder_config(located, ignored_keys));
}

std::filesystem::path locate_language_model(const std::string& model, std::string_view command) {
  const std::filesystem::path located = formats::locate_checkpoint(model);
  refuse_run_for_checkpoint(located);
  CHECK(!recommend::is_recommender(located), "{}: is a recommender; {} takes language models", printable(model),
        command);
  experiment::prove_checkpoint_files(located);
  return located;
}

}  // namespace gainlens::cli
