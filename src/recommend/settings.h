#pragma once

#include "core/json.h"
#include "core/knobs.h"
#include "recommend/backbone.h"
#include "recommend/training_settings.h"
#include "training/training_folder.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::recommend {

/// Everything about a recommender that can be chosen. Each member is a knob: a key of a --config file and an option.
struct Settings : TrainingSettings {
  const BackboneKind* backbone = &backbones().front();
  Json model = Json::object();     ///< ModelPlan::options: the knobs of the backbone that are not at their default
  bft::FilterOptions filter = {};  ///< read by the arms that have the parts it describes
};

/// Every choice of a training with a backbone, by its key in a --config file: the backbone's own, those of the training
/// and those of the filter.
std::span<const Knob<Settings>> knobs(const BackboneKind& backbone = backbones().front());

/// What a model of these settings is made from.
/// @param items  of the catalogue
ModelPlan plan_of(const Settings& settings, Arm arm, std::int64_t items);

/// All knobs with their values. settings_of(to_json(s)) is s.
OrderedJson to_json(const Settings& settings);
/// Checks each key and value alone. Whether they fit each other shows only when all sources of settings are joined.
/// @throws InvalidArgument  a key is unknown (nearest match named), of the wrong type or out of range
void check_settings(const Json& changes, const std::string& where, const BackboneKind& backbone = backbones().front());
/// The defaults, with the given keys changed.
/// @param where  names the source of the keys in messages
/// @throws InvalidArgument  as check_settings(); the values do not fit each other
Settings settings_of(const Json& changes, const std::string& where, const BackboneKind& backbone = backbones().front());

/// The settings of a stored request. A key that it lacks means what held before the setting existed.
/// @throws InvalidArgument  a key is unknown (a newer version wrote it), missing, of the wrong type or out of range;
/// the
///     values do not fit each other
Settings stored_settings(const Json& stored, const std::string& where, const BackboneKind& backbone);

/// Which requests of a run are the same. More epochs continue a training, because its learning rate is constant and its
/// patience is kept with its state.
training::RequestRules request_rules(const BackboneKind& backbone);

/// The presets of every backbone; the first is the default. Source: docs/bft.md, "Readings".
const std::vector<Preset>& presets();
/// What a preset changes in the defaults of a backbone. The norm after the embeddings is left out for one without it.
/// @throws InvalidArgument  the backbone has no such preset (nearest match named)
Json preset(std::string_view name, const BackboneKind& backbone = backbones().front());

}  // namespace gainlens::recommend
