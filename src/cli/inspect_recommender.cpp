#include "cli/inspect_parts.h"
#include "core/error.h"
#include "recommend/recommender_checkpoint.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

namespace gainlens::cli {

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
