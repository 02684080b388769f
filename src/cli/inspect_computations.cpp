#include "cli/application.h"
#include "cli/inspect_parts.h"
#include "core/error.h"
#include "core/quantity.h"
#include "models/checkpoint/torch_dtype.h"
#include "recommend/recommender_checkpoint.h"
#include "sweep/expected_time.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

namespace gainlens::cli {
namespace {

/// "0.8 s", "45 s", "3 min", "2.5 h".
std::string duration_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

void add_inspect(CLI::App& app, const GlobalOptions& global, Action& action) {
  add_inspect_with(app, global, action, {add_expected_time, inspect_recommender});
}

void add_expected_time(const models::DecoderConfig& config, const MemoryQuestion& question, Findings& findings) {
  const std::int64_t length = inspected_length(config, question);
  const auto dtype = models::parse_dtype(question.dtype, "--dtype");
  const auto rates = sweep::measured_rates(dtype, config.head_dim);
  const sweep::ExpectedTime time = sweep::expected_time(config, length, rates);
  findings.add_line(fmt::format("time at {}", format_count(length)),
                    fmt::format("about {} for each sequence, and {} for its likelihood, at the speed measured now",
                                duration_text(time.layers), duration_text(time.likelihood)));
  findings.add_json("time", {{"length", length},
                             {"seconds", time.layers},
                             {"likelihood_seconds", time.likelihood},
                             {"products_per_second", rates.products},
                             {"attention_per_second", rates.attention}});
}

void inspect_recommender(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "recommender");
  const recommend::RecommenderCheckpoint checkpoint = recommend::open_recommender(path);
  recommend::Backbone& model = *checkpoint.model;
  findings.add("backbone", model.kind().name);
  for (const recommend::ModelFact& fact : model.facts()) findings.add(fact.name, fact.text, fact.value);
  std::int64_t parameters = 0;
  for (const recommend::WeightSlot& slot : model.slots()) parameters += slot.tensor->numel();
  findings.add("parameters", fmt::format("{}", parameters), parameters);
  findings.add("item names", checkpoint.data.item_names.empty() ? "1, 2, ..." : "sha256 " + checkpoint.data.item_names,
               checkpoint.data.item_names);
  findings.add("split",
               checkpoint.data.split.empty()
                   ? "not known: an earlier version made it"
                   : fmt::format("sha256 {}; {}", printable(checkpoint.data.split, 64), checkpoint.data.options()),
               checkpoint.data.split);
  findings.add(
      "checksums",
      checkpoint.unproven.empty() ? "its files are as the training wrote them" : "not compared: " + checkpoint.unproven,
      checkpoint.unproven.empty());
}

}  // namespace gainlens::cli
