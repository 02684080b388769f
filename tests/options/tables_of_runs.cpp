#include "options/option_inputs.h"

#include "support/tiny_training.h"

namespace gainlens::testing {
namespace {

OptionTable report() {
  const std::string style = input_file("style.json", R"({"formats": ["svg"], "figures": ["sink-map"]})");
  const Words both = {swept_run(1), swept_run(2), "--out", "page"};
  return {{"report"},
          {swept_run(1), "--out", "page", "--style", style},
          {{"runs", {swept_run(2)}},
           {"--out", {"other"}},
           {"--names", {"one,two"}, both},
           {"--at", {"32"}},
           {"--deep-layers", {"2"}},
           {"--theory-margin", {"0.3"}},
           {"--lengths", {"32,64"}},
           {"--paper", {}},
           {"--axis", {"name"}, {swept_run(1), swept_run(2), "--out", "page", "!--style"}},
           {"--seed", {"7"}},
           {"--style", {style}, {"!--style"}}}};
}

OptionTable sinks() {
  return {{"sinks"},
          {swept_run(1)},
          {{"run", {swept_run(2)}}, {"--threshold", {"0.1"}}, {"--at", {"32"}}, {"--csv", {"sinks.csv"}}}};
}

OptionTable sink_vs_k() {
  return {{"sink-vs-k"},
          {swept_demo_run()},
          {{"run", {swept_run(2)}}, {"--at", {"32"}}, {"--permutations", {"99"}}, {"--seed", {"7"}}}};
}

OptionTable audit() {
  return {{"audit"}, {swept_demo_run()}, {{"run", {swept_run(2)}}, {"--at", {"32"}}, {"--all"}}};
}

OptionTable check() {
  return {{"check"}, {swept_run(1)}, {{"runs", {swept_run(2)}}}};
}

OptionTable compare() {
  const auto ranks_of = [](int seeds) {
    std::string text = seeds > 1 ? "user,target,rank,seed\n" : "user,target,rank\n";
    for (int seed = 0; seed < seeds; ++seed) {
      const auto add = [&](const std::string& user, int target, int rank) {
        text += user + "," + std::to_string(target) + "," + std::to_string(rank) +
                (seeds > 1 ? "," + std::to_string(seed) : "") + "\n";
      };
      for (int user = 0; user < 60; ++user)
        add("user" + std::to_string(user), tiny_item(user, 5 + user % 9 - 1), 1 + (user + seed) % 30);
      add("again", 5, 3);
    }
    return input_file("ranks-of-" + std::to_string(seeds) + ".csv", text);
  };
  const std::string ranks = ranks_of(2), ranks_without_seeds = ranks_of(1);
  const Words of_ranks = {ranks, recommend_run() + ":popularity", "--data", histories()};
  std::vector<OptionRow> rows = {
      {"runs", {recommend_run() + ":plain", recommend_run() + ":bft"}},
      {"--baseline", {"bft"}},
      {"--metrics", {"mrr"}},
      {"--margin", {"0.1"}, {}, "--margin"},
      {"--out", {"page"}},
      {"--edges", {"2,4"}},
      {"--resamples", {"60"}, {"--json"}},
      {"--seed", {"7"}, {"--json"}},
      {"--paper", {"Beauty"}},
      {"--by-position", {}, {recommend_run() + ":plain", recommend_run_of_other_seeds() + ":plain"}},
      {"--data", {histories()}, with_words(of_ranks, {"!--data"})},
      {"--validation"},
      {"--deterministic", {}, with_words(of_ranks, {ranks_without_seeds, recommend_run() + ":popularity"})},
  };
  for (const OptionRow& row : refused_interaction_rows(of_ranks)) rows.push_back(row);
  return {{"compare"}, {recommend_run(), "--resamples", "50"}, rows};
}

OptionTable gain_by() {
  const std::string a = "1=" + recommend_run(), b = "0.5=" + recommend_run_of_other_data();
  return {{"gain-by"},
          {a, b},
          {{"runs", {a, "0.25=" + recommend_run_of_other_data()}},
           {"--baseline", {"bft"}},
           {"--arm", {"bft"}},
           {"--metrics", {"mrr"}},
           {"--axis", {"share"}},
           {"--out", {"page"}}},
          {{"--seed", "with few seeds all arrangements are counted, and none is drawn"}}};
}

/// What k-by-frequency and error-by-precision share.
std::vector<OptionRow> rows_of_filters() {
  std::vector<OptionRow> rows = {{"run", {grid_run()}},         {"--arm", {"bft"}, {grid_run()}},
                                 {"--only-seeds", {"1"}},       {"--groups", {"20"}},
                                 {"--bins", {"3"}, {"--json"}}, {"--seed", {"7"}, {"--groups", "20"}},
                                 {"--out", {"page"}},           {"--data", {timed_interactions()}, {}, any_refusal}};
  for (const OptionRow& row : refused_interaction_rows({})) rows.push_back(row);
  return rows;
}

OptionTable k_by_frequency() {
  const std::string numbers = [] {
    std::string text = "item,price\n";
    for (int item = 1; item <= 66; ++item)
      text += std::to_string(item) + "," + std::to_string((item * 37) % 101) + "\n";
    return input_file("price.csv", text);
  }();
  std::vector<OptionRow> rows = rows_of_filters();
  rows.push_back({"--placebo", {"step-0"}});
  rows.push_back({"--against", {numbers}});
  return {{"k-by-frequency"}, {recommend_run(), "--data", histories()}, rows};
}

OptionTable error_by_precision() {
  std::vector<OptionRow> rows = rows_of_filters();
  rows.push_back({"--keep-seen"});
  return {{"error-by-precision"}, {recommend_run(), "--data", histories()}, rows};
}

OptionTable sensitivity() {
  return {{"sensitivity"},
          {grid_run(), "--arm", "bft"},
          {{"run", {recommend_run()}, {}, "variants"},
           {"--arm", {"plain"}},
           {"--metric", {"mrr"}},
           {"--margin", {"30"}},
           {"--validation"},
           {"--out", {"page"}}}};
}

}  // namespace

std::vector<OptionTable> tables_of_runs() {
  return {report(),  sinks(),          sink_vs_k(),          audit(),      check(), compare(),
          gain_by(), k_by_frequency(), error_by_precision(), sensitivity()};
}

}  // namespace gainlens::testing
