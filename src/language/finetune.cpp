#include "language/finetune.h"

#include "bft/warm_up.h"
#include "core/atomic_file.h"
#include "core/available_memory.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/quantity.h"
#include "data/answer_corruption.h"
#include "data/answer_scores.h"
#include "data/chunks.h"
#include "experiment/job.h"
#include "experiment/proven_run.h"
#include "experiment/result_file.h"
#include "formats/adapter_folder.h"
#include "generation/generate.h"
#include "language/finetune_memory.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/end_tokens.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/load_decoder.h"
#include "models/checkpoint/lora_weights.h"
#include "models/checkpoint/model_size.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/decoder/filter_config.h"
#include "models/families/gguf_config.h"
#include "runfile/checksums.h"
#include "runfile/experiment_run.h"
#include "runfile/noise_level.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace gainlens::language {
namespace {

constexpr const char* predictions_name = "predictions.jsonl";
constexpr const char* checkpoint_names[] = {"config.json", "model.safetensors"};
constexpr const char* adapter_names[] = {formats::adapter_config_name, formats::adapter_weights_name};
constexpr std::int64_t prompts_at_once = 16;

/// Whether a job writes a whole checkpoint. PEFT knows no filter, so an arm with one always does.
bool writes_whole(const FinetuneArm& arm, const LoraSettings& lora) {
  return lora.rank == 0 || lora.merge || arm.filter != bft::Arm::plain;
}

/// The largest number of parameters of a filter over the arms.
std::int64_t filter_parameters(const FinetuneRequest& request, const models::CheckpointSource& source);

/// What the largest training holds in each process: weights, gradients and its share of the moments of AdamW; with a
/// copy in bfloat16 that and its gradients too. Activations come on top.
/// @param processes  that work on a training together
std::uint64_t bytes_needed(const FinetuneRequest& request, const models::CheckpointSource& source,
                           const std::optional<models::LoraOptions>& lora, std::int64_t processes) {
  const std::int64_t parameters = models::parameter_count(source.config);
  const std::int64_t copy_bytes = request.settings.dtype == models::ComputeDtype::bfloat16 ? 4 : 0;
  if (!lora) return trained_bytes(parameters, processes) + static_cast<std::uint64_t>(copy_bytes * parameters);
  const bool whole = std::ranges::any_of(
      request.arms, [&](const std::string& arm) { return writes_whole(finetune_arm(arm), request.settings.lora); });
  return lora_bytes(source.config, *lora, {filter_parameters(request, source), whole, processes, copy_bytes > 0});
}

void check_model(const FinetuneRequest& request, const models::CheckpointSource& source,
                 const std::optional<models::LoraOptions>& lora, std::int64_t processes, bool quiet) {
  const std::string where = source.where();
  const models::DecoderConfig& config = source.config;
  CHECK(source.scaled.empty() || lora,
        "{}: has weights that are stored as numbers and scales, and all weights are trained; give the checkpoint in "
        "float32 or bfloat16, or train an adapter (--lora-rank)",
        where);
  CHECK(config.attention_layers(config.layers) == config.layers, "{}: has layers of {}, which are not trained", where,
        config.without_attention());
  const std::string stack = models::stacked_tensor(config);
  CHECK(stack.empty(), "{}: has '{}', one of a stack (experts, or norms of single heads), which is not trained", where,
        stack);
  CHECK(!config.filter, "{}: has a filter of its own; give the plain model", where);
  const std::uint64_t needed = bytes_needed(request, source, lora, processes);
  const auto available = available_memory();
  CHECK(!available || needed <= *available,
        "{}: weights, gradients and moments take {}, and {} of memory are available; give a smaller model{}", where,
        format_bytes(needed), format_bytes(*available), lora ? "" : ", or train an adapter (--lora-rank)");
  if (quiet) return;
  const auto million = [](std::int64_t count) { return static_cast<double>(count) * 1e-6; };
  const std::string trained =
      lora ? fmt::format(", of which none is trained, and {:.3f} million of an adapter",
                         million(models::lora_parameter_count(models::lora_modules(config, lora->targets), lora->rank)))
           : "";
  tell_note("{:.1f} million parameters{}: weights, gradients and moments take {}{}",
            million(models::parameter_count(config)), trained, format_bytes(needed),
            processes > 1 ? fmt::format(" in each of {} processes, which share the moments", processes) : "");
}

/// The paper's filter for fine-tuning. It begins to act when the learning rate has grown to its peak. Where a norm
/// follows attention the gain acts behind it: in front, the norm would take it back.
bft::FilterOptions filter_options(const models::DecoderConfig& config, std::int64_t warm_up) {
  bft::FilterOptions filter = models::default_decoder_filter();
  filter.estimator = bft::Estimator::reml_conjugate;
  filter.most_precision = 3;
  filter.most_process_noise = 10;
  filter.process_noise_start = -2;
  filter.warm_up = warm_up;
  if (config.post_norm) filter.gain_place = bft::GainPlace::after;
  return filter;
}

/// The content of config.json of what is trained.
OrderedJson document_of(const models::CheckpointSource& source, const FinetuneArm& arm, std::int64_t warm_up) {
  Json document;
  if (const auto* gguf = std::get_if<formats::GgufFile>(&source.tensors)) {
    document = models::describe_gguf(*gguf).config;
  } else {
    document = read_json_file(source.base / "config.json");
  }
  document.erase("quantization_config");  // the weights that are written are plain numbers
  document["torch_dtype"] = "float32";
  document.erase("dtype");
  if (arm.filter != bft::Arm::plain) {
    document[models::filter_key] = Json(knobs_to_json(bft::filter_knobs(), filter_options(source.config, warm_up)));
    if (arm.filter != bft::Arm::bft) document[models::filter_arm_key] = bft::name_of(arm.filter);
  }
  return OrderedJson(document);
}

std::int64_t filter_parameters(const FinetuneRequest& request, const models::CheckpointSource& source) {
  std::int64_t most = 0;
  for (const std::string& name : request.arms) {
    if (finetune_arm(name).filter == bft::Arm::plain) continue;
    const models::DecoderConfig config = models::parse_decoder_config(
        Json(document_of(source, finetune_arm(name), 0)), fmt::format("--arm {}: {}", name, source.where()));
    most = std::max(most, models::parameter_count(config) - models::parameter_count(source.config));
  }
  return most;
}

/// The weights of the model with those of a filter before training.
models::DecoderWeights with_filter(const models::DecoderConfig& config, models::DecoderWeights weights,
                                   std::uint64_t seed) {
  if (!config.filter) return weights;
  models::DecoderWeights fresh = models::initial_weights(config, seed);
  weights.precision = fresh.precision;
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
    weights.layers[layer].filter = fresh.layers[layer].filter;
  return weights;
}

/// Copies the tokenizer of a folder beside the weights. That of a GGUF file stays in it.
void copy_tokenizer(const models::CheckpointSource& source, const std::filesystem::path& folder) {
  if (source.is_gguf()) return;
  for (const std::filesystem::path& file : tokenizers::tokenizer_files(source.path))
    std::filesystem::copy_file(file, folder / file.filename(), std::filesystem::copy_options::overwrite_existing);
}

/// How many processes work on a training.
std::int64_t processes_together(const FinetuneRequest& request, const training::Replicas& replicas) {
  return request.spread == experiment::Spread::batches ? replicas.size() : 1;
}

/// What a message about a difference between two requests adds.
std::map<std::string, std::string> request_hints() {
  return {{"/training/lora", "an adapter, --lora-rank; absent: all weights are trained"},
          {"/training/dtype", "--dtype"},
          {"/processes", "processes that train together, as torchrun starts them; absent: one"}};
}

/// What all jobs share.
class Finetuning : public experiment::Subject {
 public:
  Finetuning(const FinetuneRequest& request, models::CheckpointSource source, std::optional<models::LoraOptions> lora,
             const training::Replicas& replicas)
      : request_(request),
        leads_(replicas.leads()),
        quiet_(request.quiet || !leads_),
        together_(processes_together(request, replicas)),
        source_(std::move(source)),
        lora_(std::move(lora)),
        tokenizer_(tokenizers::open_tokenizer(source_.path)),
        tokens_{*tokenizer_, bos(), end()},
        corruption_(request.split.training, request.data_seed) {
    for (const data::Question& question : request_.split.test)
      prompts_.push_back(prompt_tokens(tokens_, question.prompt));
    generation::check_can_generate(source_.config, prompts_, generation_options());
    validation_ = rows_of(request_.split.validation, 0, "validation");
    for (const double level : request_.noise) {
      const auto rows = std::ssize(training_[runfile::noise_variant(level)] =
                                       rows_of(request_.split.training, level, runfile::noise_variant(level)));
      for (const std::string& name : request_.arms) check_arm(finetune_arm(name), rows);
    }
    check_memory();
  }

  bool trains(const experiment::Job&) const override { return true; }
  double cost(const experiment::Job&) const override { return static_cast<double>(request_.settings.epochs); }
  Json request_of(const experiment::Job& job, const Json& run) const override {
    Json own = run;
    own["arm"] = job.arm;
    own["noise"] = runfile::noise_of_variant(job.variant).value();
    own["seed"] = job.seed;
    return own;
  }
  experiment::StoredResult prove(const experiment::Job& job) const override {
    return *experiment::prove_result(job.folder, job.label(), job.seed);
  }
  bool may_go_on() const override { return false; }  // the number of epochs is part of the request
  experiment::StoredResult run(const experiment::Work& work) override;
  void combine() override;

  /// @param threads  of a training
  Json request(std::int64_t threads) const {
    return language::request_of(request_, source_, lora_, {threads, together_});
  }

 private:
  runfile::KeptFiles weight_files(const experiment::Job& job) const {
    if (writes_whole(finetune_arm(job.arm), request_.settings.lora)) return {job.folder, checkpoint_names};
    return {job.folder, adapter_names};
  }
  /// The sha256 of all that a finished job leaves: weights, tokenizer and answers.
  Json checksums_of_all(const experiment::Job& job) const {
    std::vector<std::string> others = {predictions_name};
    if (!source_.is_gguf()) {
      for (const std::filesystem::path& file : tokenizers::tokenizer_files(source_.path))
        others.push_back(file.filename().string());
    }
    const auto weights = weight_files(job).names;
    std::vector<const char*> names(weights.begin(), weights.end());
    for (const std::string& name : others) names.push_back(name.c_str());
    return runfile::checksums_of({job.folder, names});
  }
  /// Stores the weights, or their adapter. Returns the checksums of the files.
  Json keep(const experiment::Job& job, const OrderedJson& document, const models::DecoderWeights& weights) const {
    if (writes_whole(finetune_arm(job.arm), request_.settings.lora)) {
      models::save_checkpoint(job.folder, document, models::merged(weights), at::kFloat);
    } else {
      models::save_lora_adapter(job.folder, source_.config, *lora_, name_of_base(source_.path), weights);
    }
    return runfile::checksums_of(weight_files(job));
  }
  std::optional<tokenizers::TokenId> bos() const {
    std::optional<tokenizers::TokenId> config_end;
    if (source_.config.bos_token)
      config_end = checked_cast<tokenizers::TokenId>(*source_.config.bos_token, "bos_token_id");
    return data::decide_bos(data::BosPolicy::automatic, tokenizer_.get(), config_end, {}).token;
  }
  tokenizers::TokenId end() const {
    const models::EndTokens ends = models::end_tokens(source_);
    CHECK(!ends.ids.empty(), "{}: names no token that ends a text (eos_token_id), which ends each answer",
          source_.where());
    return checked_cast<tokenizers::TokenId>(ends.ids.front(), "eos_token_id");
  }
  generation::GenerationOptions generation_options() const {
    return {.max_new = request_.settings.max_new, .ends = {tokens_.end}, .remedy = ""};
  }
  std::vector<AnswerRow> rows_of(const std::vector<data::Question>& questions, double noise,
                                 const std::string& name) const;
  std::int64_t steps_of(std::int64_t rows, std::int64_t epochs) const {
    return (epochs * rows + request_.settings.batch - 1) / request_.settings.batch;
  }
  std::int64_t warm_up_of(std::int64_t rows) const {
    const std::int64_t steps = steps_of(rows, request_.settings.epochs);
    return static_cast<std::int64_t>(std::ceil(request_.settings.warmup_ratio * static_cast<double>(steps)));
  }
  /// Refuses a filter for a model with a part that it does not know.
  void check_arm(const FinetuneArm& arm, std::int64_t rows) const {
    if (arm.filter == bft::Arm::plain) return;
    models::parse_decoder_config(Json(document_of(source_, arm, warm_up_of(rows))),
                                 fmt::format("--arm {}: {}", arm.name, source_.where()));
    const std::string never = bft::why_never_in_force(filter_options(source_.config, warm_up_of(rows)),
                                                      steps_of(rows, request_.settings.epochs), steps_of(rows, 1));
    if (arm.filter == bft::Arm::bft && !never.empty() && leads_)
      tell_warning("--arm {}: the filter does not act in this training: {}", arm.name, never);
  }
  void check_memory() const;
  /// A training that has ended.
  struct Trained {
    training::TrainingOutcome outcome;
    std::vector<double> gammas;
    std::map<std::string, std::vector<double>> filter;
    std::optional<StartLoss> start;
  };
  Trained train(const experiment::Work& work) const;
  /// The token ids of the answers, [test question]; also of what the other processes have answered.
  std::vector<std::vector<tokenizers::TokenId>> answers(const experiment::Job& job, training::Replicas& replicas) const;
  experiment::Result scored(const std::vector<std::vector<tokenizers::TokenId>>& answers,
                            const std::filesystem::path& predictions) const;

  const FinetuneRequest& request_;
  bool leads_;             // this process tells warnings
  bool quiet_;             // tells no notes: none are wanted, or another process tells them
  std::int64_t together_;  // processes that work on a training
  models::CheckpointSource source_;
  std::optional<models::LoraOptions> lora_;
  std::unique_ptr<const tokenizers::Tokenizer> tokenizer_;
  AnswerTokens tokens_;
  data::AnswerCorruption corruption_;
  std::vector<std::vector<tokenizers::TokenId>> prompts_;   // [test question]
  std::map<std::string, std::vector<AnswerRow>> training_;  // by variant
  std::vector<AnswerRow> validation_;
};

/// Refuses what does not fit into memory, and says what the activations take.
void Finetuning::check_memory() const {
  const FinetuneSettings& settings = request_.settings;
  TrainingMemory memory{.where = source_.where()};
  for (const auto& [variant, rows] : training_)
    for (const AnswerRow& row : rows) memory.longest = std::max(memory.longest, std::ssize(row.ids) - 1);
  memory.row_tokens = std::min(settings.tokens_at_once, settings.batch * memory.longest);
  memory.shape = {.tokens = std::max(memory.longest, memory.row_tokens),
                  .recompute = settings.recompute,
                  .value_bytes = settings.dtype == models::ComputeDtype::bfloat16 ? 2 : 4};
  memory.state = bytes_needed(request_, source_, lora_, together_);
  models::DecoderConfig config = source_.config;
  for (const std::string& name : request_.arms)
    if (finetune_arm(name).filter != bft::Arm::plain) config.filter = filter_options(config, 0);
  if (const auto available = available_memory()) check_fits(config, memory, *available);
  if (!quiet_)
    tell_note("activations of up to {} tokens take about {}{}", memory.shape.tokens,
              format_bytes(activation_bytes(config, memory.shape)),
              settings.recompute ? "; layers are computed again" : "");
}

/// The rows that fit. What is left out is said.
std::vector<AnswerRow> Finetuning::rows_of(const std::vector<data::Question>& questions, double noise,
                                           const std::string& name) const {
  const std::int64_t most = std::min(request_.settings.max_length, source_.config.max_positions);
  std::vector<AnswerRow> rows;
  std::vector<std::string> too_long;
  std::int64_t joined = 0;
  for (const data::Question& question : questions) {
    AnswerRow row =
        answer_row(tokens_, question.prompt, corruption_.corrupted(question.answers.front(), question.id, noise));
    if (std::ssize(row.ids) > most) {
      too_long.push_back(question.id);
      continue;
    }
    joined += row.joined ? 1 : 0;
    rows.push_back(std::move(row));
  }
  if (!too_long.empty() && leads_)
    tell_warning("{}: {} longer than {} tokens and left out, the first of them '{}'", name,
                 counted_are(too_long.size(), "row"), most, printable(too_long.front(), 60));
  if (joined > 0 && !quiet_)
    tell_note("{}: in {} the tokenizer joins prompt and answer; each was encoded by itself", name,
              counted(joined, "row"));
  CHECK(!rows.empty(), "{}: every row is longer than {} tokens; raise --max-length", name, most);
  return rows;
}

Finetuning::Trained Finetuning::train(const experiment::Work& work) const {
  const experiment::Job& job = work.job;
  const bool leads = work.replicas.leads();
  const std::string label = fmt::format("{} seed {}", job.label(), job.seed);
  const FinetuneSettings& settings = request_.settings;
  const FinetuneArm& arm = finetune_arm(job.arm);
  std::vector<AnswerRow> rows = training_.at(job.variant);
  const std::int64_t warm_up = warm_up_of(std::ssize(rows));
  const OrderedJson document = document_of(source_, arm, warm_up);
  const models::DecoderConfig config = models::parse_decoder_config(Json(document), source_.where());
  const at::ScalarType dtype = settings.dtype == models::ComputeDtype::bfloat16 ? at::kBFloat16 : at::kFloat;
  // What is not trained is rounded once, here.
  models::DecoderWeights weights = models::load_checkpoint(source_.path, {.dtype = lora_ ? dtype : at::kFloat}).weights;
  if (lora_) models::begin_lora(config, *lora_, job.seed, weights);
  AnswerTask task(
      config, with_filter(config, std::move(weights), job.seed), std::move(rows), validation_, job.seed,
      {.batch = settings.batch,
       .weight_decay = settings.weight_decay,
       .focal = arm.focal,
       .precision_factor = settings.precision_learning_rate,
       .tokens_at_once = settings.tokens_at_once,
       .recompute = settings.recompute,
       .dtype = dtype},
      [&](const models::DecoderWeights& weights) { return keep(job, document, weights); }, &work.replicas);
  std::optional<training::TrainingFolder> folder;
  if (leads) folder.emplace(job.folder / "training", work.request);
  const bool begun = folder && std::filesystem::exists(folder->state_file());
  if (work.replicas.text_of_first(begun ? "begun" : "").empty()) task.measure_start();
  if (task.start() && !quiet_)
    tell_note("{}: the held-out loss before training is {:.4f}, and {:.4f} with the filter in force", label,
              task.start()->plain, task.start()->filtered);
  training::TrainerOptions options;
  options.steps = task.steps_of(settings.epochs);
  options.schedule.decay = training::Decay::constant;
  options.schedule.warmup_steps = warm_up;
  options.optimizer.learning_rate = settings.learning_rate;
  options.optimizer.beta2 = 0.999;
  options.max_gradient_norm = settings.max_gradient_norm;
  options.evaluate_every = options.save_every = task.steps_of(1);
  options.spread_moments = true;
  options.quiet = true;  // the progress of all trainings is shown together
  if (!quiet_) options.label = label;
  std::int64_t epochs = 0;
  options.evaluated = [&](const training::Evaluation& point) {
    ++epochs;
    work.progress.epoch_done(fmt::format("{}, step {}, loss {:.4f}, held out {:.4f}", label, point.step,
                                         point.training_loss, point.validation_loss));
  };
  Trained trained{training::train(task, folder ? &*folder : nullptr, options, work.replicas), task.gammas(),
                  task.filter().curves(), task.start()};
  work.progress.skip(static_cast<double>(settings.epochs - epochs), label + " done");
  if (!leads) return trained;
  const training::TrainingOutcome& outcome = trained.outcome;
  runfile::prove_kept(task.kept(), weight_files(job),
                      {fmt::format("the best step, {},", outcome.best_step), "the training state",
                       fmt::format("delete {} to train again", printable(folder->state_file().string()))});
  write_file_atomically(folder->path() / "history.csv", runfile::history_csv(outcome.history));
  if (!trained.filter.empty()) write_file_atomically(folder->path() / "filter.csv", task.filter().csv());
  if (task.start())
    write_file_atomically(folder->path() / "start.csv", fmt::format("held_out_loss,with_filter\n{:.9g},{:.9g}\n",
                                                                    task.start()->plain, task.start()->filtered));
  if (!trained.gammas.empty()) {
    std::string csv = "step,gamma\n";
    for (std::size_t i = 0; i < trained.gammas.size() && i < outcome.history.size(); ++i)
      csv += fmt::format("{},{}\n", outcome.history[i].step, trained.gammas[i]);
    write_file_atomically(folder->path() / "gamma.csv", csv);
  }
  copy_tokenizer(source_, job.folder);
  return trained;
}

experiment::StoredResult Finetuning::run(const experiment::Work& work) {
  Trained trained = train(work);
  const auto answered = answers(work.job, work.replicas);
  experiment::StoredResult stored;
  if (!work.replicas.leads()) return stored;
  stored.result = scored(answered, work.job.folder / predictions_name);
  stored.result.filter = std::move(trained.filter);
  if (trained.start) {
    stored.result.test[runfile::start_loss] = trained.start->plain;
    stored.result.test[runfile::start_loss_with_filter] = trained.start->filtered;
  }
  if (!trained.gammas.empty()) stored.result.curve[runfile::gamma_curve] = std::move(trained.gammas);
  stored.kept = checksums_of_all(work.job);
  for (const training::Evaluation& point : trained.outcome.history) {
    stored.result.curve[runfile::training_loss].push_back(point.training_loss);
    stored.result.curve["validation_loss"].push_back(point.validation_loss);
    if (point.step == trained.outcome.best_step)
      stored.result.best_epoch = std::ssize(stored.result.curve["validation_loss"]);
  }
  return stored;
}

/// Greedy, of the checkpoint in the folder of the job. Processes take whole groups of prompts, so that the answers are
/// those of one process.
std::vector<std::vector<tokenizers::TokenId>> Finetuning::answers(const experiment::Job& job,
                                                                  training::Replicas& replicas) const {
  replicas.text_of_first("");  // rank 0 has stored everything
  CHECK(std::filesystem::exists(job.folder / weight_files(job).names[0]),
        "{}: process {} does not see the checkpoint that process 0 has written there; processes that train together "
        "need a common file system",
        printable(job.folder.string()), replicas.rank());
  const auto model = models::load_own_decoder(job.folder);
  const auto questions = static_cast<std::int64_t>(prompts_.size()), columns = request_.settings.max_new + 1;
  const at::Tensor all = at::zeros({questions, columns}, at::kLong);  // the number of tokens, and the tokens
  auto cells = all.accessor<std::int64_t, 2>();
  const training::Range own = replicas.part_of((questions + prompts_at_once - 1) / prompts_at_once);
  for (std::int64_t first = own.first * prompts_at_once; first < std::min(own.last * prompts_at_once, questions);
       first += prompts_at_once) {
    const auto begin = static_cast<std::size_t>(first);
    const generation::Generated generated =
        generation::generate(*model,
                             std::span(prompts_).subspan(
                                 begin, std::min(static_cast<std::size_t>(prompts_at_once), prompts_.size() - begin)),
                             generation_options());
    for (std::size_t i = 0; i < generated.continued.size(); ++i) {
      const std::vector<tokenizers::TokenId>& tokens = generated.continued[i].tokens;
      const std::int64_t count = std::ssize(tokens) - (generated.continued[i].ended ? 1 : 0);
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      cells[row][0] = count;
      for (std::int64_t at = 0; at < count; ++at) cells[row][at + 1] = tokens[static_cast<std::size_t>(at)];
    }
  }
  replicas.sum({all});
  std::vector<std::vector<tokenizers::TokenId>> found(prompts_.size());
  for (std::int64_t row = 0; row < questions; ++row) {
    for (std::int64_t at = 1; at <= cells[row][0]; ++at)
      found[static_cast<std::size_t>(row)].push_back(static_cast<tokenizers::TokenId>(cells[row][at]));
  }
  return found;
}

/// What the answers are worth; every one is written into a file.
experiment::Result Finetuning::scored(const std::vector<std::vector<tokenizers::TokenId>>& answers,
                                      const std::filesystem::path& predictions) const {
  experiment::Result result;
  std::vector<double>&exact = result.scores["exact_match"], &f1 = result.scores["f1"];
  std::string lines;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const data::Question& question = request_.split.test[i];
    const std::string answer = answer_in(tokenizer_->decode(answers[i]));
    const data::AnswerScore score = data::answer_score(answer, question.answers);
    exact.push_back(score.exact);
    f1.push_back(score.f1);
    lines += json_text({{"id", question.id},
                        {"answer", answer},
                        {"accepted", question.answers},
                        {"exact_match", score.exact},
                        {"f1", score.f1}}) +
             "\n";
  }
  write_file_atomically(predictions, lines);
  const auto held_out = static_cast<std::size_t>(request_.split.selection_rows);
  for (const auto* name : {"exact_match", "f1"}) {
    const std::span<const double> scores = result.scores[name];
    result.test[name] = mean_score(scores);
    if (held_out > 0 && held_out < scores.size())
      result.test[std::string(name) + "_not_selected"] = mean_score(scores.subspan(held_out));
  }
  return result;
}

void Finetuning::combine() {
  runfile::ExperimentRun run;
  run.request = read_json_file(request_.out / experiment::request_name);
  run.unit_scores = {{"exact_match", true, "1"}, {"f1", true, "1"}};
  for (const data::Question& question : request_.split.test) run.units.push_back(question.id);
  std::vector<experiment::SoughtArm> sought;
  for (const FinetuneArm& arm : finetune_arms()) {
    const std::filesystem::path folder = request_.out / arm.name;
    if (!std::filesystem::is_directory(folder)) continue;
    std::set<double> levels;  // ascending
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (const auto level = runfile::noise_of_variant(entry.path().filename().string())) levels.insert(*level);
    }
    for (const double level : levels)
      sought.push_back(
          {arm.name,
           runfile::noise_variant(level),
           {[this](const experiment::Job& job) { return prove(job).result; }, request_.settings.epochs, 0}});
  }
  experiment::add_finished(run, request_.out, sought);
  runfile::publish_run_file(request_.out, [&](const std::filesystem::path& path) {
    runfile::write_experiment_run(path, run, request_.program_version);
  });
}

}  // namespace

std::vector<experiment::Outcome> finetune(const FinetuneRequest& request, training::Replicas& replicas) {
  check_request(request);
  const bool quiet = request.quiet || !replicas.leads();  // one process says everything
  models::CheckpointSource source = models::open_checkpoint(request.model);
  std::optional<models::LoraOptions> lora = trained_lora(request.settings.lora, source);
  check_model(request, source, lora, processes_together(request, replicas), quiet);
  if (replicas.leads()) {
    for (const std::string& note : source.notes) tell_warning("{}", note);
  }
  Finetuning subject(request, std::move(source), std::move(lora), replicas);
  experiment::Axes axes{.arms = request.arms, .variants = {}, .seed = request.seed, .seeds = request.seeds};
  for (const double level : request.noise) axes.variants.push_back(runfile::noise_variant(level));
  experiment::Experiment trainings({.title = "train finetune",
                                    .axes = std::move(axes),
                                    .out = request.out,
                                    .rules = {.hints = request_hints()},
                                    .threads = request.threads,
                                    .seeds_at_once = 1,  // each holds a whole model, four times
                                    .spread = request.spread,
                                    .quiet = quiet},
                                   subject, replicas);
  return trainings.run(subject.request(trainings.sharing().threads_of_seed));
}

std::vector<experiment::Outcome> finetune(const FinetuneRequest& request) {
  training::SingleReplica alone;
  return finetune(request, alone);
}

}  // namespace gainlens::language
