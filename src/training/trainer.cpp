#include "training/trainer.h"

#include "core/check.h"
#include "core/json_words.h"
#include "core/listener.h"
#include "core/progress.h"
#include "training/adamw.h"
#include "training/schedule.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gainlens::training {
namespace {

void check(const TrainerOptions& options) {
  CHECK(options.steps > 0, "steps: {}; must be positive", options.steps);
  CHECK(options.schedule.warmup_steps >= 0, "warm-up: {} steps; must not be negative", options.schedule.warmup_steps);
  CHECK(options.evaluate_every > 0, "evaluations: every {} steps; must be positive", options.evaluate_every);
  CHECK(options.save_every > 0, "states: saved every {} steps; must be positive", options.save_every);
  CHECK(options.max_gradient_norm >= 0, "largest gradient norm: {}; must not be negative", options.max_gradient_norm);
}

Json to_json(const Evaluation& point) {
  return {point.step, point.training_loss, point.validation_loss, point.learning_rate, point.gradient_norm};
}

/// One training, from the state stored on disk to its end.
class Trainer {
 public:
  Trainer(Task& task, const TrainingFolder* folder, const TrainerOptions& options, Replicas& replicas)
      : task_(task),
        options_(options),
        replicas_(replicas),
        state_file_(folder != nullptr ? folder->state_file() : std::filesystem::path()),
        request_(folder != nullptr ? folder->identity() : std::string()),
        optimizer_(task.parameters(), options.optimizer, replicas, options.spread_moments),
        best_(options.patience) {}

  TrainingOutcome run() {
    resume();
    outcome_.resumed_at = step_;
    tell_of_resuming();
    Progress progress(options_.title, static_cast<double>(options_.steps - step_), options_.unit,
                      options_.quiet || !replicas_.leads());
    while (step_ < options_.steps && !best_.exhausted()) {
      const double amount = task_.amount(step_);
      step_once();
      const bool last = step_ == options_.steps;
      if (last || step_ % options_.evaluate_every == 0) evaluate();
      if (last || best_.exhausted() || step_ % options_.save_every == 0) save();
      progress.advance(1, amount, label());
    }
    progress.skip(static_cast<double>(options_.steps - step_), "ended early");
    progress.finish();
    outcome_.steps = step_;
    outcome_.stopped_early = step_ < options_.steps;
    outcome_.best_step = best_.step();
    outcome_.best_loss = best_.value();
    return std::move(outcome_);
  }

 private:
  void tell_of_resuming() const {
    if (step_ == 0 || step_ >= options_.steps || best_.exhausted() || options_.label.empty() || !replicas_.leads())
      return;
    tell_note("{}: continues from its stored state with {}; {} of {} steps were done before", options_.label,
              task_.name_of(step_), step_, options_.steps);
  }

  void step_once() {
    optimizer_.zero_gradients();
    const auto [loss, norm] = gradients();
    optimizer_.step(learning_rate_factor(options_.schedule, step_));
    ++step_;
    ++since_evaluation_;
    loss_sum_ += loss;
    norm_sum_ += norm;
  }

  /// Mean loss of the step and norm of its gradient.
  /// @throws RunFailed  one of them is not finite; the stored files stay
  std::pair<double, double> gradients() {
    try {
      const double loss = optimizer_.sum(task_.accumulate_gradients(step_));
      if (!std::isfinite(loss)) throw_run_failed("training: the loss is {}", loss);
      return {loss, optimizer_.clip_gradients(options_.max_gradient_norm)};
    } catch (const ReplicaLost&) {
      throw;
    } catch (const RunFailed& error) {
      throw_run_failed("{} at {}; {}. A smaller learning rate may help", error.what(), task_.name_of(step_), kept());
    }
  }

  void evaluate() {
    const double loss = validation_loss();
    const auto count = static_cast<double>(since_evaluation_);
    const double rate = options_.optimizer.learning_rate * learning_rate_factor(options_.schedule, step_ - 1);
    outcome_.history.push_back({step_, loss_sum_ / count, loss, rate, norm_sum_ / count});
    since_evaluation_ = 0;
    loss_sum_ = norm_sum_ = 0;
    if (best_.observe(step_, loss) && replicas_.leads()) task_.keep_best();
    if (options_.evaluated) options_.evaluated(outcome_.history.back());
  }

  double validation_loss() {
    try {
      const double loss = task_.validation_loss();
      if (!std::isfinite(loss)) throw_run_failed("training: the held-out loss is {}", loss);
      return loss;
    } catch (const ReplicaLost&) {
      throw;
    } catch (const RunFailed& error) {
      throw_run_failed("{} after {}; {}. A smaller learning rate may help", error.what(), task_.name_of(step_ - 1),
                       kept());
    }
  }

  std::string kept() const {
    return best_.any() ? fmt::format("the best model, of {}, is kept", task_.name_of(best_.step() - 1))
                       : "no model has been kept yet";
  }

  std::string label() const {
    if (outcome_.history.empty()) return fmt::format("step {}", step_);
    return fmt::format("step {}, {}", step_, task_.describe(outcome_.history.back().validation_loss));
  }

  void save() {
    if (!saves_) return;
    TrainingState state;
    state.step = step_;
    state.tensors = optimizer_.state();
    if (!replicas_.leads()) return;
    Json history = Json::array();
    for (const Evaluation& point : outcome_.history) history.push_back(to_json(point));
    state.notes = {{"best", best_.to_json()}, {"history", history},    {"since_evaluation", since_evaluation_},
                   {"loss_sum", loss_sum_},   {"norm_sum", norm_sum_}, {"task", task_.notes()},
                   {"request", request_}};
    save_training_state(state_file_, state);
  }

  void resume() {
    TrainingState state;
    state.notes = nullptr;
    if (replicas_.leads()) state = read_state();
    const Json own = {{"step", state.step}, {"notes", state.notes}, {"saves", !state_file_.empty()}};
    const Json common = Json::parse(replicas_.text_of_first(own.dump()));
    step_ = common.at("step").get<std::int64_t>();
    saves_ = common.at("saves").get<bool>();
    optimizer_.restore(state.tensors, step_);  // the initial weights, if nothing was saved
    const Json& notes = common.at("notes");
    if (notes.is_null()) return;
    try {
      read_notes(notes);
    } catch (const Json::exception& error) {
      throw_invalid("{}: cannot be read ({})", printable(state_file_.string()), json_error_in_words(error));
    }
  }

  /// The state in the file; without tensors and notes if there is none.
  TrainingState read_state() const {
    TrainingState state;
    state.notes = nullptr;
    if (!std::filesystem::exists(state_file_)) return state;
    state = load_training_state(state_file_);
    CHECK(state.step <= options_.steps,
          "{}: is at step {}, but the training has only {} steps; delete it to train from the start",
          printable(state_file_.string()), state.step, options_.steps);
    const std::string request = state.notes.value("request", "");  // earlier versions stored none
    CHECK(request.empty() || request == request_,
          "{}: is the state of a training with another request; put the right one back, or delete it to train from the "
          "start",
          printable(state_file_.string()));
    return state;
  }

  void read_notes(const Json& notes) {
    best_.restore(notes.at("best"));
    for (const Json& point : notes.at("history")) {
      outcome_.history.push_back({point.at(0).get<std::int64_t>(), point.at(1).get<double>(), point.at(2).get<double>(),
                                  point.at(3).get<double>(), point.at(4).get<double>()});
    }
    since_evaluation_ = notes.at("since_evaluation").get<std::int64_t>();
    loss_sum_ = notes.at("loss_sum").get<double>();
    norm_sum_ = notes.at("norm_sum").get<double>();
    task_.restore(notes.at("task"));
  }

  Task& task_;
  const TrainerOptions& options_;
  Replicas& replicas_;
  std::filesystem::path state_file_;
  std::string request_;  // TrainingFolder::identity()
  SharedAdamW optimizer_;
  BestValue best_;
  TrainingOutcome outcome_;
  std::int64_t step_ = 0;
  bool saves_ = false;  // states; known after resume()
  std::int64_t since_evaluation_ = 0;
  double loss_sum_ = 0;
  double norm_sum_ = 0;
};

}  // namespace

std::string Task::name_of(std::int64_t step) const {
  return fmt::format("step {}", step + 1);
}

std::string Task::describe(double validation_loss) const {
  return fmt::format("validation loss {:.3f}", validation_loss);
}

TrainingOutcome train(Task& task, const TrainingFolder* folder, const TrainerOptions& options, Replicas& replicas) {
  check(options);
  ASSERT(folder == nullptr || replicas.leads(), "training: rank {} of the processes has a folder", replicas.rank());
  return Trainer(task, folder, options, replicas).run();
}

TrainingOutcome train(Task& task, const TrainingFolder& folder, const TrainerOptions& options) {
  SingleReplica alone;
  return train(task, &folder, options, alone);
}

}  // namespace gainlens::training
