// Times the parts of training and ranking of a recommender. Options: recommend_bench --help

#include "bench/peak_rate.h"
#include "bench/timing.h"
#include "bft/feedforward_jacobian.h"
#include "bft/filter_step.h"
#include "bft/fused_step.h"
#include "core/check.h"
#include "core/console.h"
#include "data/leave_one_out.h"
#include "kernels/gradient/layer_gradients.h"
#include "kernels/gradient/packed_attention.h"
#include "kernels/gradient/trained_loss.h"
#include "kernels/linear/matrix_product.h"
#include "recommend/full_ranking.h"
#include "recommend/recommend_task.h"
#include "training/adamw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace gainlens::bench {
namespace {

struct Options {
  std::string data;
  std::int64_t epochs = 2;
  std::int64_t threads = 0;
  std::int64_t repeats = 21;
  bool tiles = false, arms = false, ranking = false, processor = false;
  std::int64_t rows = 1458, items = 12101, width = 64;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// The loss with its gradients against the three products that it needs.
void time_loss(const Options& options) {
  const at::Tensor input = at::randn({options.rows, options.width}).set_requires_grad(true);
  const at::Tensor head = (at::randn({options.items, options.width}) * 0.1).set_requires_grad(true);
  const at::Tensor targets = at::randint(options.items, {options.rows}, at::kLong);
  const auto loss = [&](std::int64_t logit_bytes) {
    return [&, logit_bytes] {
      input.mutable_grad() = at::Tensor();
      head.mutable_grad() = at::Tensor();
      kernels::trained_mean_loss(input, head, targets, {.logit_bytes = logit_bytes}).backward();
    };
  };
  const at::Tensor x = input.detach(), e = head.detach();
  const at::Tensor logits = at::empty({options.rows, options.items});
  const std::vector<std::function<void()>> methods = {
      loss(std::int64_t{32} << 20), loss(0),
      [&] {
        kernels::matrix_product(x, e.t(), {.output = logits});
        kernels::matrix_product(logits, e);
        kernels::matrix_product(logits.t(), x);
      },
      [&] {
        input.mutable_grad() = at::Tensor();
        head.mutable_grad() = at::Tensor();
        at::cross_entropy_loss(at::linear(input, head), targets).backward();
      }};
  const char* const names[] = {"logits kept", "logits computed twice", "three products alone", "dense, by libtorch"};
  const auto times = interleaved_times(methods, {.repeats = options.repeats});
  const double operations = 6e-9 * static_cast<double>(options.rows * options.items * options.width);
  print_result("loss with gradients, {} positions x {} items x {}\n", options.rows, options.items, options.width);
  for (std::size_t i = 0; i < times.size(); ++i) {
    print_result("  {:<24} {:7.2f} ms ({:.2f} to {:.2f})  {:5.0f} GFLOP/s of its three products\n", names[i],
                 1e3 * times[i].median, 1e3 * times[i].low, 1e3 * times[i].high, operations / times[i].median);
  }
}

/// The products of one tile of the loss, in one thread: scores, gradient of the input, gradient of the head.
void time_tiles(const Options& options) {
  at::set_num_threads(1);
  constexpr std::int64_t rows = 512, items = 512;
  const at::Tensor x = at::randn({rows, options.width}), e = at::randn({items, options.width});
  const at::Tensor tile = at::randn({rows, items}), x_gradient = at::zeros_like(x), e_gradient = at::zeros_like(e);
  std::vector<std::function<void()>> methods;
  for (const auto kernel : {kernels::ProductKernel::libtorch, kernels::ProductKernel::strips}) {
    const auto many = [](auto product) {
      return [product] {
        for (int i = 0; i < 20; ++i) product();
      };
    };
    methods.emplace_back(many([&, kernel] { kernels::matrix_product(x, e.t(), {.output = tile}, kernel); }));
    methods.emplace_back(many(
        [&, kernel] { kernels::matrix_product(tile, e, {.residual = x_gradient, .output = x_gradient}, kernel); }));
    methods.emplace_back(many(
        [&, kernel] { kernels::matrix_product(tile.t(), x, {.residual = e_gradient, .output = e_gradient}, kernel); }));
  }
  const auto times = interleaved_times(methods, {.repeats = options.repeats});
  const double operations = 20 * 2e-9 * static_cast<double>(rows * items * options.width);
  const char* const names[] = {"scores", "gradient of input", "gradient of head"};
  print_result("products of a tile of {} positions x {} items, one thread, GFLOP/s\n", rows, items);
  for (std::size_t i = 0; i < 3; ++i)
    print_result("  {:<20} libtorch {:4.0f}  strips {:4.0f}\n", names[i], operations / times[i].median,
                 operations / times[i + 3].median);
}

void time_epochs(const Options& options) {
  const data::LeaveOneOut split(data::read_interactions(options.data));
  const recommend::Settings settings;
  training::SingleReplica alone;
  recommend::RecommendTask task(
      settings, recommend::Arm::plain, split, 0, [](const recommend::Backbone&) { return Json(); }, alone);
  training::AdamW optimizer(task.parameters(), {});
  print_result("{} users, {} items; peak memory before training {:.0f} MB\n", split.users(), split.items(),
               peak_megabytes());
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    double loss = 0;
    const double taken = seconds_of([&] {
      for (std::int64_t step = 0; step < task.steps_per_epoch(); ++step) {
        optimizer.zero_gradients();
        loss += task.accumulate_gradients(epoch * task.steps_per_epoch() + step);
        optimizer.step(1);
      }
    });
    print_result("epoch {}: {:.2f} s, loss {:.4f}\n", epoch + 1, taken,
                 loss / static_cast<double>(task.steps_per_epoch()));
  }
  recommend::BackboneScorer scorer(task.model());
  const double ranking = seconds_of([&] { rank_all(scorer, split, data::HeldOut::test); });
  print_result("ranking all users: {:.2f} s; peak memory {:.0f} MB\n", ranking, peak_megabytes());
}

/// A ranking whose last layer computes all positions.
class AllPositions : public recommend::BackboneScorer {
 public:
  explicit AllPositions(const recommend::Backbone& model) : BackboneScorer(model), model_(model) {}
  at::Tensor represent(std::span<const data::History> histories) override {
    const recommend::PackedSequences packed = pack(histories, model_.view());
    return model_.run(packed).index_select(0, packed.last_rows());
  }

 private:
  const recommend::Backbone& model_;
};

/// Steps and rankings of several arms in turn.
struct TimedArm {
  std::string name;
  recommend::Settings settings;
  recommend::Arm arm;
};

std::vector<TimedArm> timed_arms() {
  std::vector<TimedArm> arms;
  const auto add = [&](const std::string& name, recommend::Arm arm, const Json& changes) {
    Json all = changes;
    all["warm_up"] = 0;
    arms.push_back({name, recommend::settings_of(all, name), arm});
  };
  add("plain", recommend::Arm::plain, {});
  add("plain again", recommend::Arm::plain, {});
  add("plain-no-wo", recommend::Arm::plain_no_wo, {});
  add("constant-k", recommend::Arm::constant_k, {});
  add("bft", recommend::Arm::bft, {});
  add("bft, no Jacobian", recommend::Arm::bft, {{"jacobian", "none"}});
  add("bft, exact Jacobian", recommend::Arm::bft, {{"jacobian", "exact"}});
  add("bft, current Jacobian", recommend::Arm::bft, {{"running_jacobian", false}});
  return arms;
}

/// The parts of one layer of the filter, forward and backward, on a batch of histories, beside those of a plain layer.
void time_parts(const data::LeaveOneOut& split, const Options& options) {
  constexpr std::int64_t width = 64, heads = 2, head_dim = width / heads, inner = 4 * width;
  std::vector<std::int64_t> users(static_cast<std::size_t>(std::min<std::int64_t>(256, split.users())));
  std::iota(users.begin(), users.end(), 0);
  const recommend::PackedSequences packed = recommend::pack_training(split, users, {.positions = 50});
  const std::int64_t rows = packed.positions();
  const auto leaf = [](at::IntArrayRef shape) { return at::randn(shape).requires_grad_(true); };
  const at::Tensor q = leaf({rows, heads, head_dim}), k = leaf(q.sizes()), v = leaf(q.sizes());
  const at::Tensor precision = at::rand({rows, width}).add(0.5).requires_grad_(true), slope = leaf({1}),
                   noise = leaf({width});
  const at::Tensor before = leaf({rows, inner}), up = at::randn({inner, width}), down = at::randn({width, inner});
  const bft::FilterOptions filter;
  const bft::JacobianFactors factors = bft::jacobian_factors(up, down, filter.jacobian_rank);
  const at::Tensor n_eff = at::rand({rows, heads}).add(1).requires_grad_(true), estimate = leaf({rows, width}),
                   residual = at::rand({rows, width}).requires_grad_(true);
  const auto options_of = [&] {
    kernels::PackedAttentionOptions made{.dropout = {0.5, 7, 0}};
    made.key_bias = precision.mean(1).log();
    made.distance_slope = slope;
    return made;
  };
  const std::vector<std::function<void()>> parts = {
      [&] {
        kernels::packed_attention(q, k, v, packed.begin, {.dropout = {0.5, 7, 0}}).sum().backward();
      },
      [&] {
        const auto found = kernels::packed_attention_moments(q, k, v, packed.begin, options_of());
        (found.output + found.residual + found.n_eff.unsqueeze(2)).sum().backward();
      },
      [&] {
        const auto [scaled, posterior] = bft::fused_update({estimate, n_eff, residual}, precision, filter, 1);
        (scaled + posterior).sum().backward();
      },
      [&] { kernels::trained_activation(before, kernels::Activation::gelu_erf).sum().backward(); },
      [&] {
        const auto [value, slopes] = kernels::trained_activation_with_slope(before, kernels::Activation::gelu_erf);
        const at::Tensor diagonal = bft::jacobian(factors, slopes);
        const auto [predicted, sum] =
            bft::fused_predict(precision, diagonal, bft::process_noise(noise, filter), filter);
        (value.sum() + predicted.sum()).backward();
      }};
  const auto times = interleaved_times(parts, {.repeats = 5 * options.repeats});
  const char* const names[] = {"attention", "attention with moments and biases", "update", "activation",
                               "activation with Jacobian and predict"};
  print_result("parts of a layer, forward and backward, {} histories with {} positions\n", users.size(), rows);
  for (std::size_t i = 0; i < parts.size(); ++i)
    print_result("  {:<38} {:6.2f} ms ({:.2f} to {:.2f})\n", names[i], 1e3 * times[i].median, 1e3 * times[i].low,
                 1e3 * times[i].high);
}

void time_arms(const Options& options) {
  const data::LeaveOneOut split(data::read_interactions(options.data));
  training::SingleReplica alone;
  const std::vector<TimedArm> arms = timed_arms();
  std::vector<std::unique_ptr<recommend::RecommendTask>> tasks;
  std::vector<std::unique_ptr<training::AdamW>> optimizers;
  std::vector<std::function<void()>> steps;
  std::vector<std::int64_t> next(arms.size(), 0);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    tasks.push_back(std::make_unique<recommend::RecommendTask>(
        arms[i].settings, arms[i].arm, split, 0, [](const recommend::Backbone&) { return Json(); }, alone));
    optimizers.push_back(std::make_unique<training::AdamW>(tasks[i]->parameters(), training::AdamWOptions{}));
    steps.emplace_back([&, i] {
      for (int k = 0; k < 4; ++k) {
        optimizers[i]->zero_gradients();
        tasks[i]->accumulate_gradients(next[i]++);
        optimizers[i]->clip_gradients(0);
        optimizers[i]->step(1);
      }
    });
  }
  const auto show = [&](const std::string& title, const std::vector<std::function<void()>>& methods) {
    const auto times = interleaved_times(methods, {.repeats = options.repeats, .processor = options.processor});
    print_result("{}{}\n", title, options.processor ? ", processor time" : "");
    for (std::size_t i = 0; i < arms.size(); ++i) {
      print_result("  {:<22} {:8.2f} ms ({:.2f} to {:.2f})  {:.3f} of plain\n", arms[i].name, 1e3 * times[i].median,
                   1e3 * times[i].low, 1e3 * times[i].high, times[i].median / times[0].median);
    }
  };
  print_result("{} users, {} items\n", split.users(), split.items());
  if (options.ranking) {
    for (const auto& step : steps) step();  // the first one puts the filter in force
  } else {
    show("4 training steps", steps);
  }

  const c10::InferenceMode inference;
  std::vector<data::History> histories;
  for (std::int64_t user = 0; user < std::min<std::int64_t>(512, split.users()); ++user)
    histories.push_back(split.history(user, data::HeldOut::test));
  const auto show_scorers = [&](const std::string& which, const auto& make) {
    std::vector<std::unique_ptr<recommend::BackboneScorer>> scorers;
    std::vector<std::function<void()>> passes, rankings;
    for (std::size_t i = 0; i < arms.size(); ++i) {
      scorers.push_back(make(tasks[i]->model()));
      passes.emplace_back([&, i] { scorers[i]->represent(histories); });
      rankings.emplace_back([&, i] {
        rank_users(*scorers[i], split, data::HeldOut::test, {0, std::ssize(histories)});
      });
    }
    show("the layers for 512 users" + which, passes);
    show("ranking of 512 users" + which, rankings);
  };
  show_scorers(", all positions in the last layer",
               [](const recommend::Backbone& model) { return std::make_unique<AllPositions>(model); });
  show_scorers("", [](const recommend::Backbone& model) { return std::make_unique<recommend::BackboneScorer>(model); });
  if (options.ranking) return;
  const c10::InferenceMode gradients(false);
  time_parts(split, options);
}

int run(int count, char** arguments) {
  CLI::App app("Times the loss of a recommender, its epochs and its ranking.");
  Options options;
  app.add_option("--data", options.data, "Interactions; without them the loss alone is timed");
  app.add_option("--epochs", options.epochs)->capture_default_str();
  app.add_option("--threads", options.threads, "0: all cores")->capture_default_str();
  app.add_option("--repeats", options.repeats, "of the loss")->capture_default_str();
  app.add_option("--rows", options.rows)->capture_default_str();
  app.add_option("--items", options.items)->capture_default_str();
  app.add_option("--width", options.width)->capture_default_str();
  app.add_flag("--arms", options.arms, "Time the arms on the data in turn");
  app.add_flag("--ranking", options.ranking, "With --arms: the ranking alone, no training");
  app.add_flag("--processor-time", options.processor, "With --arms: of the processors, for a busy machine");
  app.add_flag("--tiles", options.tiles, "Time the products of one tile alone, in one thread");
  CLI11_PARSE(app, count, arguments);
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  print_result("{} threads, peak {:.0f} GFLOP/s in float32\n", at::get_num_threads(), measured_peak_rate() * 1e-9);
  if (options.tiles) {
    time_tiles(options);
    return 0;
  }
  if (options.arms) {
    CHECK(!options.data.empty(), "--arms: needs --data");
    time_arms(options);
    return 0;
  }
  time_loss(options);
  if (!options.data.empty()) time_epochs(options);
  return 0;
}

}  // namespace
}  // namespace gainlens::bench

int main(int count, char** arguments) {
  try {
    return gainlens::bench::run(count, arguments);
  } catch (const gainlens::InvalidArgument& error) {
    gainlens::print_notice("recommend_bench: error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    gainlens::print_notice("recommend_bench: failed: {}\n", error.what());
    return 1;
  }
}
