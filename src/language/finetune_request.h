#pragma once

#include "bft/arm.h"
#include "core/json.h"
#include "data/question_split.h"
#include "experiment/experiment.h"
#include "language/answer_task.h"
#include "language/lora.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/compute_dtype.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::language {

/// What a fine-tuning learns with. The defaults are the paper's for SQuAD where it gives them.
struct FinetuneSettings {
  std::int64_t epochs = 2;
  std::int64_t batch = 4;
  double learning_rate = 1e-5;
  double weight_decay = 0.05;
  double warmup_ratio = 0.1;  ///< share of the steps; then the rate is constant, of which the paper says nothing
  double max_gradient_norm = 1;
  std::int64_t max_length = 1024;      ///< tokens of prompt, answer and end; longer rows are not learned from
  std::int64_t max_new = 32;           ///< tokens of an answer in the evaluation
  std::int64_t tokens_at_once = 2048;  ///< AnswerTaskOptions::tokens_at_once
  bool recompute = false;              ///< layers run again in the backward pass; changes no bit
  /// Of the computation: float32 or bfloat16. The optimiser is in float32.
  models::ComputeDtype dtype = models::ComputeDtype::float32;
  /// Factor on the learning rate of a filter's parameters. The paper's, which does not say it for fine-tuning.
  double precision_learning_rate = 100;
  LoraSettings lora;
};

/// An arm: a loss, or a filter in the decoder, by the name that --arm gives it.
struct FinetuneArm {
  std::string name, help;
  std::optional<FocalLoss> focal = {};
  bft::Arm filter = bft::Arm::plain;
};
const std::vector<FinetuneArm>& finetune_arms();
/// @throws InvalidArgument  there is none of this name (nearest match named)
const FinetuneArm& finetune_arm(const std::string& name);

struct FinetuneRequest {
  std::filesystem::path model;
  data::QuestionSplit split;
  std::string data_name;
  std::string task = "jsonl";  ///< "squad", "nq", "jsonl": what the paper's numbers may stand beside
  std::int64_t passages = 0;   ///< of a prompt of nq; else 0
  std::vector<std::string> arms;
  std::vector<double> noise;    ///< percent of answer words that are replaced; each level is a variant "np10"
  std::uint64_t data_seed = 0;  ///< of the noise; the split has been drawn by it too
  std::uint64_t seed = 0;
  std::int64_t seeds = 1;
  FinetuneSettings settings;
  std::filesystem::path out;
  std::int64_t threads = 1;
  experiment::Spread spread = experiment::Spread::batches;  ///< what several processes share
  bool quiet = false;
  std::string program_version;
};

/// @throws InvalidArgument  an arm that does not exist, or is given twice; settings, levels or seeds out of
///     range
/// Needs neither the model nor the data.
void check_request(const FinetuneRequest& request);

/// What computes a training. Its last bits depend on it.
struct TrainingMachine {
  std::int64_t threads = 1, processes = 1;
};

/// Everything that determines the numbers of a run, except arms, levels and seeds.
/// @param lora  the adapter that is trained
Json request_of(const FinetuneRequest& request, const models::CheckpointSource& source,
                const std::optional<models::LoraOptions>& lora, const TrainingMachine& machine);

}  // namespace gainlens::language
