#include "recommend/idle_settings.h"

#include "bft/filter_slots.h"
#include "core/check.h"
#include "recommend/arm.h"

#include <algorithm>

namespace gainlens::recommend {
namespace {

/// Whether the arm learns weights of precision, which have a learning rate of their own.
bool learns_precision(const bft::Filter& filter, std::int64_t layers) {
  constexpr std::int64_t any_size = 1;
  const auto learns = [](const std::vector<bft::FilterSlot>& slots) {
    return std::ranges::any_of(slots, [](const auto& slot) { return slot.role == bft::WeightRole::precision; });
  };
  return learns(bft::filter_slots(filter, any_size, any_size, any_size, /*predicts=*/layers != 1)) ||
         learns(bft::initial_precision_slots(filter, any_size, any_size, /*counted=*/true));
}

/// Whether the arm's precision of items follows from tau_base.
bool reads_popularity(const bft::Filter& filter) {
  return filter.has_initial_precision() && filter.options.initial_precision != bft::InitialPrecision::table;
}

/// The settings on which the numbers of an arm depend.
OrderedJson read_by(std::string_view arm, const Settings& settings) {
  OrderedJson all = to_json(settings), read = OrderedJson::object();
  for (const auto& [key, value] : all.items()) {
    const bool is_of_files = key == "save_every";
    if (!is_of_files && why_idle(settings, arm, key).empty()) read[key] = value;
  }
  return read;
}

}  // namespace

std::int64_t layers_of(const Settings& settings) {
  const OrderedJson all = to_json(settings);
  const auto found = all.find("layers");
  return found == all.end() ? 0 : found->get<std::int64_t>();
}

std::string why_idle(const Settings& settings, std::string_view arm, std::string_view key) {
  const ArmParts* parts = find_arm(arm);
  if (key == "keep_seen") return {};
  if (parts == nullptr) return fmt::format("arm {} is not trained", arm);
  if ((key == "negatives" || key == "negative_exponent") && settings.loss == LossKind::full)
    return "'loss' is \"full\"";
  const bft::Filter filter{parts->arm, settings.filter};
  if (key == "precision_learning_rate" && !learns_precision(filter, layers_of(settings)))
    return fmt::format("arm {} learns no precision", arm);
  if (key == "permute_popularity" && !reads_popularity(filter)) {
    return filter.has_initial_precision() ? std::string("'initial_precision' is \"table\"")
                                          : fmt::format("arm {} has no precision of items", arm);
  }
  const bool is_filter_knob =
      std::ranges::any_of(bft::filter_knobs(), [&](const auto& knob) { return knob.key == key; });
  if (is_filter_knob) return bft::why_idle(filter, key, layers_of(settings));
  const BackboneKind& kind = *settings.backbone;
  return kind.why_idle != nullptr ? kind.why_idle(plan_of(settings, parts->arm, /*items=*/1), key) : std::string();
}

void check_variants_of_arms(const std::vector<std::string>& arms, const std::vector<Variant>& variants,
                            const std::map<std::string, Settings>& settings, const Settings& run) {
  for (const std::string& arm : arms) {
    std::map<std::string, std::string> owner;  // of what the arm reads, as text
    if (!variants.empty()) owner.emplace(read_by(arm, run).dump(), "");
    for (const Variant& variant : variants) {
      const auto [other, is_new] = owner.emplace(read_by(arm, settings.at(variant.name)).dump(), variant.name);
      if (is_new) continue;
      const std::string key = variant.changes.empty() ? std::string() : variant.changes.begin().key();
      const std::string reason = why_idle(settings.at(variant.name), arm, key);
      throw_invalid(
          "--variant {}: arm {} would have the numbers {}{}; train this arm in another call into the same "
          "folder, without the variant",
          variant.name, arm, other->second.empty() ? "that it has without it" : "of variant " + other->second,
          reason.empty() ? "" : fmt::format(" ('{}' has no effect, because {})", key, reason));
    }
  }
}

}  // namespace gainlens::recommend
