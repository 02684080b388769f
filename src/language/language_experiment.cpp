#include "language/language_experiment.h"

#include "core/check.h"
#include "core/listener.h"
#include "core/sha256.h"
#include "core/unit_scores.h"
#include "experiment/job.h"
#include "experiment/proven_run.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/decoder.h"
#include "models/decoder/filter_config.h"
#include "runfile/checksums.h"
#include "runfile/experiment_run.h"
#include "runfile/training_files.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace gainlens::language {
namespace {

constexpr const char* loss_score = "loss";
constexpr const char* loss_not_selected = "loss_not_selected";

/// One request for each arm, to be checked before anything is read.
std::vector<LanguageModelRequest> requests_of_arms(const LanguageExperimentRequest& request) {
  std::vector<LanguageModelRequest> all;
  for (const std::string& arm : request.arms)
    all.push_back(request_of_training(request, {arm, "", request.model.seed, request.model.out}));
  return all;
}

std::string sha256_of(std::span<const tokenizers::TokenId> tokens) {
  const auto bytes = std::as_bytes(tokens);
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// What all trainings share.
class LanguageModels : public experiment::Subject {
 public:
  explicit LanguageModels(const LanguageExperimentRequest& request)
      : request_(request),
        prepared_(prepare_texts(requests_of_arms(request))),
        held_out_(held_out_sequences(prepared_.recipe, std::ssize(prepared_.tokens.validation))) {}

  bool trains(const experiment::Job&) const override { return true; }
  double cost(const experiment::Job&) const override { return static_cast<double>(evaluations()); }
  Json request_of(const experiment::Job& job, const Json& run) const override {
    Json own = run;
    own["arm"] = job.arm;
    own["seed"] = job.seed;
    return own;
  }
  experiment::StoredResult prove(const experiment::Job& job) const override {
    return *experiment::prove_result(job.folder, job.label(), job.seed);
  }
  bool may_go_on() const override { return false; }  // the steps are part of the recipe
  experiment::StoredResult run(const experiment::Work& work) override;
  void combine() override;

  /// Everything that determines the numbers of the run, except arms and seeds.
  /// @param threads  of a training
  Json request(std::int64_t threads) const;

 private:
  std::int64_t evaluations() const {
    const std::int64_t steps = prepared_.recipe.schedule.total_steps, every = prepared_.recipe.evaluate_every;
    return (steps + every - 1) / every;
  }
  /// Where the held-out sequences begin, in the order of the units.
  std::vector<std::int64_t> begins() const {
    std::vector<std::int64_t> all = held_out_.evaluated;
    all.insert(all.end(), held_out_.others.begin(), held_out_.others.end());
    return all;
  }
  std::vector<double> losses_of(const std::filesystem::path& checkpoint) const;

  const LanguageExperimentRequest& request_;
  PreparedTexts prepared_;
  HeldOutSequences held_out_;
};

Json LanguageModels::request(std::int64_t threads) const {
  std::vector<std::string> names;
  for (const std::filesystem::path& text : request_.model.texts) names.push_back(text.filename().string());
  const bft::FilterOptions filter = request_.model.filter.value_or(models::default_decoder_filter());
  const Json split = {prepared_.hashes, sha256_of(prepared_.tokens.validation), held_out_.context, begins()};
  return {{"kind", "train language-model"},
          {"version", runfile::language_request_version},
          {"unit", "sequence"},
          {"recipe", prepared_.recipe.document},
          {"texts", prepared_.hashes},
          {"data",
           {{"name", fmt::format("{}", fmt::join(names, ", "))},
            {"split", sha256_hex(split.dump())},
            {"test", held_out_.evaluated.size() + held_out_.others.size()},
            {"selection_rows", held_out_.evaluated.size()}}},
          {"filter", Json(knobs_to_json(bft::filter_knobs(), filter))},
          {"precision_learning_rate", request_.model.precision_learning_rate},
          {"threads", threads}};
}

/// The loss of each held-out sequence, in the order of the units.
std::vector<double> LanguageModels::losses_of(const std::filesystem::path& checkpoint) const {
  const c10::InferenceMode inference;
  const auto model = models::load_decoder(checkpoint);
  std::vector<double> losses;
  for (const std::int64_t& begin : begins()) {
    const Batch batch = windows_at(prepared_.tokens.validation, prepared_.tokens.bos, held_out_.context, {&begin, 1});
    const hooks::Stream stream = model->forward({batch.inputs}, {}, {});
    losses.push_back(model->target_losses(stream.hidden.flatten(0, 1), batch.targets.flatten()).mean().item<double>());
    if (!std::isfinite(losses.back()))
      throw_run_failed("{}: the loss of the held-out sequence at token {} is {}", printable(checkpoint.string()), begin,
                       losses.back());
  }
  return losses;
}

experiment::StoredResult LanguageModels::run(const experiment::Work& work) {
  const experiment::Job& job = work.job;
  const std::string label = fmt::format("{} seed {}", job.label(), job.seed);
  std::int64_t done = 0;
  LanguageModelOutcome outcome =
      train_prepared(request_of_training(request_, job), prepared_,
                     {request_.model.quiet ? std::string() : label, [&](const training::Evaluation& point) {
                        ++done;
                        work.progress.epoch_done(fmt::format("{}, step {}, loss {:.4f}, held out {:.4f}", label,
                                                             point.step, point.training_loss, point.validation_loss));
                      }});
  work.progress.skip(static_cast<double>(evaluations() - done), label + " done");
  if (!outcome.diverged.empty())
    tell_warning("{} has diverged: {}; a smaller 'learning_rate' may help", label, outcome.diverged);
  experiment::StoredResult stored;
  std::vector<const char*> names;
  for (const std::string& name : language_checkpoint_files()) names.push_back(name.c_str());
  stored.kept = runfile::checksums_of({job.folder, names});
  stored.result.filter = std::move(outcome.filter);
  for (const training::Evaluation& point : outcome.training.history) {
    stored.result.curve[runfile::training_loss].push_back(point.training_loss);
    stored.result.curve["validation_loss"].push_back(point.validation_loss);
    if (point.step == outcome.training.best_step)
      stored.result.best_epoch = std::ssize(stored.result.curve["validation_loss"]);
  }
  const std::vector<double> losses = losses_of(job.folder);
  stored.result.test[loss_score] = mean_score(losses);
  if (!held_out_.others.empty())
    stored.result.test[loss_not_selected] = mean_score(std::span(losses).subspan(held_out_.evaluated.size()));
  stored.result.scores[loss_score] = losses;
  return stored;
}

void LanguageModels::combine() {
  runfile::ExperimentRun run;
  run.request = read_json_file(request_.model.out / experiment::request_name);
  run.unit_scores = {{loss_score, false, "nats"}};
  for (const std::int64_t begin : begins()) run.units.push_back(fmt::format("token-{}", begin));
  std::vector<experiment::SoughtArm> sought;
  for (const std::string& arm : models::decoder_arm_names())
    sought.push_back(
        {arm,
         "",
         {[this](const experiment::Job& job) { return prove(job).result; }, evaluations(), prepared_.recipe.patience}});
  experiment::add_finished(run, request_.model.out, sought);
  runfile::publish_run_file(request_.model.out, [&](const std::filesystem::path& path) {
    runfile::write_experiment_run(path, run, request_.program_version);
  });
}

}  // namespace

LanguageModelRequest request_of_training(const LanguageExperimentRequest& request, const experiment::Job& job) {
  LanguageModelRequest own = request.model;
  own.out = job.folder;
  own.seed = job.seed;
  own.quiet = true;  // the progress of all trainings is shown together
  const bft::Arm arm = models::decoder_arm(job.arm, "--arm");
  own.filter_arm = bft::Arm::bft;
  if (arm == bft::Arm::bft) {
    if (!own.filter) own.filter = models::default_decoder_filter();
    return own;
  }
  // The options are those of the whole filter; controls have its parts with their defaults.
  own.precision_learning_rate = LanguageModelRequest().precision_learning_rate;
  own.filter.reset();
  if (arm == bft::Arm::plain) return own;
  own.filter = models::default_decoder_filter();
  own.filter_arm = arm;
  return own;
}

std::vector<experiment::Outcome> train_language_models(const LanguageExperimentRequest& request) {
  experiment::check_seeds(request.model.seed, request.seeds);
  LanguageModels subject(request);
  training::SingleReplica alone;
  experiment::Experiment trainings(
      {.title = "train language-model",
       .axes = {.arms = request.arms, .variants = {}, .seed = request.model.seed, .seeds = request.seeds},
       .out = request.model.out,
       .rules = {.names = {"/data/name"},
                 .first = {"/kind"},
                 .absent = {{"/filter", absent_values(bft::filter_knobs())}},
                 .complete = {"", "/filter"}},
       .threads = request.threads,
       .seeds_at_once = 1,
       .quiet = request.model.quiet},
      subject, alone);
  return trainings.run(subject.request(trainings.sharing().threads_of_seed));
}

}  // namespace gainlens::language
