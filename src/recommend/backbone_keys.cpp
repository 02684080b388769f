#include "recommend/backbone_keys.h"

#include "bft/filter_options.h"
#include "core/check.h"
#include "core/nearest.h"
#include "recommend/hstu_config.h"
#include "recommend/sasrec_config.h"
#include "recommend/training_settings.h"

#include <fmt/ranges.h>

#include <map>
#include <span>

namespace gainlens::recommend {
namespace {

template <typename Owner>
void add_keys(std::span<const Knob<Owner>> knobs, std::vector<std::string>& keys) {
  for (const Knob<Owner>& knob : knobs) keys.push_back(knob.key);
}

}  // namespace

std::vector<std::string> settings_keys(std::string_view backbone, const std::string& where) {
  // As in backbones(), which needs libtorch.
  std::map<std::string, std::vector<std::string>, std::less<>> by_backbone;
  for (const bool bidirectional : {false, true})
    add_keys(sasrec_knobs(bidirectional), by_backbone[sasrec_name(bidirectional)]);
  add_keys(hstu_knobs(), by_backbone[std::string(hstu_name)]);
  const auto found = by_backbone.find(backbone);
  if (found == by_backbone.end()) {
    std::vector<std::string> names;
    names.reserve(by_backbone.size());
    for (const auto& [name, keys] : by_backbone) names.push_back(name);
    throw_invalid("{}: '{}'; must be {}{}", where, printable(backbone, 60), fmt::join(names, " or "),
                  did_you_mean(backbone, names));
  }
  std::vector<std::string> keys = found->second;
  add_keys(std::span<const Knob<TrainingSettings>>(training_knobs()), keys);
  add_keys(bft::filter_knobs(), keys);
  return keys;
}

}  // namespace gainlens::recommend
