#include "reports/sweep/layer_ticks.h"

#include <fmt/format.h>

#include <algorithm>

namespace gainlens::reports {

std::string even_ticks(std::size_t count, std::size_t most, const std::function<std::string(std::size_t)>& label) {
  const std::size_t step = (count + most - 1) / most;
  std::string text;
  for (std::size_t i = 0; i < count; i += step) text += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", label(i), i);
  return text;
}

std::vector<bool> global_layers(const SweepRun& run) {
  std::vector<bool> global;
  for (const std::string& kind : run.reader().attention()) global.push_back(kind == "global");
  const bool both = std::count(global.begin(), global.end(), true) % std::ssize(global) != 0;
  return both ? global : std::vector<bool>{};
}

std::string layer_ticks(const SweepRun& run, std::size_t most) {
  const std::vector<std::int64_t>& layers = run.reader().layers();
  const std::vector<bool> global = global_layers(run);
  if (global.empty())
    return even_ticks(layers.size(), most, [&](std::size_t layer) { return fmt::format("{}", layers[layer]); });
  std::string text;
  const std::size_t step = (layers.size() + most - 1) / most;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!global[layer] && layer % step != 0) continue;
    text += fmt::format("{}\"{}\" {}", text.empty() ? "" : ", ",
                        global[layer] ? fmt::format("{{/:Bold {}}}", layers[layer]) : fmt::format("{}", layers[layer]),
                        layer);
  }
  return text;
}

}  // namespace gainlens::reports
