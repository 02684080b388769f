#include "language/finetune_request.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/sha256.h"
#include "experiment/job.h"
#include "tokenizers/tokenizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace gainlens::language {
namespace {

constexpr std::int64_t finetune_version = 2;

void check_settings(const FinetuneSettings& settings) {
  const auto positive = [](std::int64_t value, const char* option) {
    CHECK(value >= 1, "{}: {}; must be at least 1", option, value);
  };
  positive(settings.epochs, "--epochs");
  positive(settings.batch, "--batch");
  positive(settings.max_new, "--max-new");
  positive(settings.tokens_at_once, "--tokens-at-once");
  CHECK(settings.dtype == models::ComputeDtype::float32 || settings.dtype == models::ComputeDtype::bfloat16,
        "--dtype: '{}'; must be float32 or bfloat16", models::name_of(settings.dtype));
  CHECK(settings.max_length >= 3, "--max-length: {}; must be at least 3", settings.max_length);
  const auto from_to = [](double value, double most, const char* option) {
    CHECK(value >= 0 && value <= most, "{}: {}; must be 0 to {}", option, value, most);
  };
  from_to(settings.learning_rate, 1, "--learning-rate");
  from_to(settings.weight_decay, 1, "--weight-decay");
  from_to(settings.warmup_ratio, 1, "--warmup-ratio");
  from_to(settings.max_gradient_norm, 1e6, "--max-gradient-norm");
  from_to(settings.precision_learning_rate, 1e6, "--precision-learning-rate");
  check_lora(settings.lora);
}

Json to_json(const FinetuneSettings& settings) {
  return {{"epochs", settings.epochs},
          {"batch", settings.batch},
          {"learning_rate", settings.learning_rate},
          {"weight_decay", settings.weight_decay},
          {"warmup_ratio", settings.warmup_ratio},
          {"max_gradient_norm", settings.max_gradient_norm},
          {"precision_learning_rate", settings.precision_learning_rate},
          {"max_length", settings.max_length},
          {"max_new", settings.max_new},
          {"tokens_at_once", settings.tokens_at_once},
          {"dtype", models::name_of(settings.dtype)}};
}

std::string sha256_of(const std::vector<data::Question>& questions, std::string_view part) {
  Sha256 hash;
  for (const data::Question& question : questions) {
    const Json line = {part, question.id, question.prompt, question.answers};
    hash.update(line.dump() + "\n");
  }
  return hash.hex();
}

std::string sha256_of(const data::QuestionSplit& split) {
  return sha256_hex(sha256_of(split.training, "training") + sha256_of(split.validation, "validation") +
                    sha256_of(split.test, "test"));
}

}  // namespace

const std::vector<FinetuneArm>& finetune_arms() {
  static const std::vector<FinetuneArm> arms = {
      {"sft", "cross-entropy of the answer tokens", std::nullopt},
      {"focal", "focal loss whose gamma = softplus(alpha) is learned, from ln 2 on; it can only grow",
       FocalLoss{.learned = true}},
      {"focal-0.5", "focal loss with gamma 0.5", FocalLoss{.gamma = 0.5}},
      {"focal-1", "focal loss with gamma 1", FocalLoss{.gamma = 1}},
      {"focal-2", "focal loss with gamma 2", FocalLoss{.gamma = 2}},
      {"bft", "the Bayesian filter in every layer, with the paper's options for fine-tuning", std::nullopt,
       bft::Arm::bft},
      {"constant-k", "control: the gain of each dimension is a learned constant", std::nullopt, bft::Arm::constant_k},
      {"gate", "control: the gain is a learned gate of what attention reads", std::nullopt, bft::Arm::gate},
      {"plain-decay", "control: scores fall with distance as in the filter, and nothing else", std::nullopt,
       bft::Arm::plain_decay},
  };
  return arms;
}

const FinetuneArm& finetune_arm(const std::string& name) {
  std::vector<std::string> names;
  for (const FinetuneArm& arm : finetune_arms()) {
    if (arm.name == name) return arm;
    names.push_back(arm.name);
  }
  throw_invalid("--arm: '{}'; must be one of {}{}", printable(name, 60), fmt::join(names, ", "),
                did_you_mean(name, names));
}

void check_request(const FinetuneRequest& request) {
  CHECK(!request.arms.empty(), "--arm: at least one is needed");
  for (auto arm = request.arms.begin(); arm != request.arms.end(); ++arm) {
    finetune_arm(*arm);
    CHECK(std::find(request.arms.begin(), arm, *arm) == arm, "--arm: '{}' is given twice", *arm);
  }
  CHECK(!request.noise.empty(), "--noise: at least one level is needed");
  for (auto level = request.noise.begin(); level != request.noise.end(); ++level) {
    CHECK(*level >= 0 && *level <= 100, "--noise: {}; must be 0 to 100 (percent)", *level);
    CHECK(std::find(request.noise.begin(), level, *level) == level, "--noise: {} is given twice", *level);
  }
  experiment::check_seeds(request.seed, request.seeds);
  check_settings(request.settings);
}

Json request_of(const FinetuneRequest& request, const models::CheckpointSource& source,
                const std::optional<models::LoraOptions>& lora, const TrainingMachine& machine) {
  Json files = Json::object();
  for (const std::filesystem::path& file : source.files)
    if (file.extension() != ".json") files[file.filename().string()] = sha256_file(file);
  Json training = to_json(request.settings);
  if (lora) training["lora"] = to_json(request.settings.lora, *lora);
  Json document = {{"kind", "train finetune"},
                   {"version", finetune_version},
                   {"unit", "question"},
                   {"model", {{"family", source.config.family}, {"files", files}}},
                   {"tokenizer", tokenizers::tokenizer_sha256(source.path)},
                   {"data",
                    {{"name", request.data_name},
                     {"task", request.task},
                     {"passages", request.passages},
                     {"split", sha256_of(request.split)},
                     {"training", request.split.training.size()},
                     {"validation", request.split.validation.size()},
                     {"test", request.split.test.size()},
                     {"selection_rows", request.split.selection_rows},
                     {"seed", request.data_seed}}},
                   {"training", training},
                   {"threads", machine.threads}};
  if (machine.processes > 1) document["processes"] = machine.processes;
  return document;
}

}  // namespace gainlens::language
