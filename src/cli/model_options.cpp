#include "cli/model_options.h"

#include "cli/command_options.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/json.h"
#include "core/nearest.h"
#include "experiment/proven_run.h"
#include "formats/hub_cache.h"
#include "kernels/compute_device.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/decoder_sites.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"

#include <array>
#include <sstream>

namespace gainlens::cli {
namespace {

recommend::RecommenderCheckpoint open_recommender(const std::filesystem::path& path,
                                                  const std::vector<std::string>& ignored_keys) {
  refuse_ignored_keys(ignored_keys, "a recommender");
  return recommend::open_recommender(path);
}

}  // namespace

data::BosPolicy TextOptions::policy() const {
  static const std::array<std::string, 3> policies = {"auto", "always", "never"};
  const auto found = std::find(policies.begin(), policies.end(), bos);
  CHECK(found != policies.end(), "--bos: '{}'; must be auto, always or never{}", printable(bos, 40),
        did_you_mean(bos, policies));
  constexpr std::array values = {data::BosPolicy::automatic, data::BosPolicy::always, data::BosPolicy::never};
  return values[static_cast<std::size_t>(found - policies.begin())];
}

sweep::TokenSourceOptions TextOptions::source() const {
  return {text, tokens, policy()};
}

void add_model_option(CLI::App& command, std::string& model, const std::string& also) {
  command
      .add_option("model", model,
                  "Checkpoint folder in Hugging Face layout, its name on the Hub if it is in the cache, GGUF file or "
                  "a folder with one, or folder of an adapter (LoRA, as PEFT writes it)" +
                      also)
      ->required();
}

void add_dtype_option(CLI::App& command, std::string& dtype) {
  command.add_option("--dtype", dtype, "Compute in float64, float32, bfloat16 or float16 (or fp64, fp32, bf16, fp16)")
      ->capture_default_str();
}

void add_stream_weights(CLI::App& command, bool& stream_weights) {
  command.add_flag("--stream-weights", stream_weights,
                   "For models larger than memory: read each layer from the files when it runs. The numbers are the "
                   "same");
}

void add_text_options(CLI::App& command, TextOptions& options) {
  command.add_option("--text", options.text,
                     "File with UTF-8 text, plain or gzipped, or - for standard input; the checkpoint's tokenizer "
                     "turns it into tokens");
  command.add_option("--tokens", options.tokens,
                     "File with token ids, to use instead of --text: a JSON array, plain or gzipped");
  command
      .add_option("--bos", options.bos,
                  "BOS token at the start of each chunk: auto (as the tokenizer is configured; none with --tokens), "
                  "always, never")
      ->capture_default_str();
}

void add_targets_option(CLI::App& command, std::optional<std::int64_t>& targets) {
  command.add_option("--targets", targets,
                     "The loss is that of so many last tokens of each document (default: all but the first). The "
                     "output head, which is large where the vocabulary is, runs over no others");
}

std::int64_t chosen_targets(std::optional<std::int64_t> targets) {
  CHECK(!targets || *targets >= 1, "--targets: {}; must be at least 1", *targets);
  return targets.value_or(0);
}

void add_prompt_options(CLI::App& command, PromptOptions& options, const std::string& batch_help) {
  command.add_option("--prompt", options.prompt, "The prompt itself");
  command.add_option("--batch", options.batch, "File with a prompt a line, {\"prompt\": \"..\"}; " + batch_help);
}

std::vector<PromptSource> prompt_sources(const PromptOptions& options, const TextOptions& text) {
  sweep::TokenSourceOptions one = text.source();
  one.prompt = options.prompt;
  const bool other = one.prompt || !one.text.empty() || !one.token_ids.empty();
  if (options.batch.empty()) {
    CHECK(other, "there is no prompt; give --prompt '..', --text FILE, --tokens FILE.json or --batch FILE.jsonl");
    return {{one, ""}};
  }
  CHECK(!other, "--batch: there is another prompt too; give one of --batch, --prompt, --text and --tokens");
  std::istringstream lines(read_text_file(options.batch));
  std::vector<PromptSource> sources;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const std::string where = fmt::format("--batch: {}: line {}", printable(options.batch), number);
    CHECK(line.find_first_not_of(" \t\r") != std::string::npos, "{}: is blank", where);
    const Json json = parse_json(line, where);
    CHECK(json.is_object() && json.size() == 1 && json.contains("prompt") && json["prompt"].is_string(),
          "{}: must be {{\"prompt\": \"..\"}}", where);
    one.prompt = json["prompt"].get<std::string>();
    CHECK(!one.prompt->empty(), "{}: the prompt is empty", where);
    sources.push_back({one, where});
  }
  CHECK(!sources.empty(), "--batch: {} has no line", printable(options.batch));
  return sources;
}

void naming_the_line(const PromptSource& source, const std::function<void()>& read) {
  try {
    read();
  } catch (const InvalidArgument& error) {
    if (source.where.empty()) throw;
    throw_invalid("{}: {}", source.where, error.what());
  }
}

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
  recommend::refuse_run_for_checkpoint(located);
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
  recommend::refuse_run_for_checkpoint(located);
  if (recommend::is_recommender(located)) return open_recommender(located, ignored_keys).model->sites();
  return models::decoder_sites(models::read_decoder_config(located, ignored_keys));
}

std::filesystem::path locate_language_model(const std::string& model, std::string_view command) {
  const std::filesystem::path located = formats::locate_checkpoint(model);
  recommend::refuse_run_for_checkpoint(located);
  CHECK(!recommend::is_recommender(located), "{}: is a recommender; {} takes language models", printable(model),
        command);
  experiment::prove_checkpoint_files(located);
  return located;
}

models::LoadOptions ModelArguments::load_options(const GlobalOptions& global) const {
  models::LoadOptions load;
  load.dtype = models::parse_dtype(dtype, "--dtype");
  load.device = kernels::compute_device(global.device);
  load.stream = stream_weights;
  load.ignored_keys = ignored_config_keys;
  return load;
}

}  // namespace gainlens::cli
