#include "cli/inspect_parts.h"
#include "core/counted.h"
#include "core/error.h"
#include "recommend/sasrec_checkpoint.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

namespace gainlens::cli {

void inspect_recommender(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "recommender");
  recommend::SasRecCheckpoint checkpoint = recommend::load_sasrec(path, recommend::CheckpointLayout::gainlens);
  const recommend::SasRecConfig& config = checkpoint.config;
  findings.add("backbone", "sasrec");
  findings.add("arm", fmt::format("{}: {}", config.parts().name, config.parts().help),
               std::string(config.parts().name));
  findings.add("items", fmt::format("{}", config.items), config.items);
  findings.add("layers", fmt::format("{}", config.layers), config.layers);
  findings.add("heads", fmt::format("{} of {} dimensions", config.heads, config.head_dim()), config.heads);
  findings.add("width", fmt::format("{}; {} neurons in the MLP", config.width, config.inner_width), config.width);
  findings.add("history", fmt::format("the last {}", counted(config.positions, "item")), config.positions);
  findings.add("norms", config.norm == recommend::NormPlace::pre ? "before each part" : "after each sum");
  if (config.arm != recommend::Arm::plain) {
    std::string changed;
    const Json usual = Json(knobs_to_json(bft::filter_knobs(), bft::FilterOptions()));
    const Json own = Json(knobs_to_json(bft::filter_knobs(), config.filter));
    for (const auto& [key, value] : own.items()) {
      if (value != usual.at(key)) changed += fmt::format("{}{} {}", changed.empty() ? "" : ", ", key, value.dump());
    }
    findings.add("filter", changed.empty() ? "the default options" : "the default options, but " + changed, own);
  }
  std::int64_t parameters = 0;
  for (const recommend::SasRecSlot& slot : recommend::sasrec_slots(config, checkpoint.weights))
    parameters += slot.tensor->numel();
  findings.add("parameters", fmt::format("{}", parameters), parameters);
  findings.add("item names", checkpoint.data.item_names.empty() ? "1, 2, ..." : "sha256 " + checkpoint.data.item_names,
               checkpoint.data.item_names);
  findings.add("split",
               checkpoint.data.split.empty()
                   ? "not known: an earlier version made it"
                   : fmt::format("sha256 {}; --ties {} --min-item-count {}", printable(checkpoint.data.split, 64),
                                 printable(checkpoint.data.ties, 40), checkpoint.data.min_item_count),
               checkpoint.data.split);
  findings.add(
      "checksums",
      checkpoint.unproven.empty() ? "its files are as the training wrote them" : "not compared: " + checkpoint.unproven,
      checkpoint.unproven.empty());
}

}  // namespace gainlens::cli
