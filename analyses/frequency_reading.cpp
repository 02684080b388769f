#include "analyses/frequency_reading.h"

#include "core/check.h"

#include <algorithm>
#include <string_view>

namespace gainlens::analyses {
namespace {

using Values = std::vector<double> FilteredPositions::Layer::*;
constexpr Values both[] = {&FilteredPositions::Layer::gain, &FilteredPositions::Layer::precision};

FrequencyQuantity& quantity_of(FrequencyReading::Layer& layer, Values which) {
  return which == &FilteredPositions::Layer::gain ? layer.gain : layer.precision;
}

/// The mean over models of each position; offsets from the first, so that equal values have an equal mean.
std::vector<double> mean_of_models(const FilteredArm& arm, std::size_t layer, Values which) {
  const std::vector<double>& first = arm.models.front().layers[layer].*which;
  std::vector<double> mean(first.size(), 0);
  for (const FilteredPositions& model : arm.models) {
    const std::vector<double>& values = model.layers[layer].*which;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += values[i] - first[i];
  }
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = first[i] + mean[i] / static_cast<double>(arm.models.size());
  return mean;
}

void check_alike(const FilteredArm& arm, const FilteredPositions& first) {
  for (const FilteredPositions& model : arm.models)
    CHECK(model.read == first.read && model.layers.size() == first.layers.size(),
          "{}: its models read other positions, or have another number of layers; only models with equal --positions "
          "and --layers can be set beside each other",
          printable(arm.name, 60));
}

OrderedJson to_json(const SeedFrequency& mean) {
  OrderedJson json = OrderedJson::object();
  put(json, "rho", mean.rho);
  put(json, "interval", mean.interval);
  put(json, "seed_deviation", mean.deviation);
  put(json, "partial_rho", mean.partial);
  put(json, "partial_interval", mean.partial_interval);
  return json;
}

OrderedJson to_json(const std::vector<FrequencyBin>& bins) {
  OrderedJson json = OrderedJson::array();
  for (const FrequencyBin& bin : bins) {
    OrderedJson& entry = json.emplace_back(OrderedJson{{"items", bin.items},
                                                       {"fewest", bin.fewest},
                                                       {"most", bin.most},
                                                       {"mean_count", bin.mean_count},
                                                       {"mean", bin.mean}});
    put(entry, "interval", bin.interval);
  }
  return json;
}

OrderedJson to_json(const FrequencyQuantity& quantity) {
  OrderedJson json = to_json(quantity.mean);
  json["seeds"] = OrderedJson::array();
  for (const FrequencyCorrelation& seed : quantity.seeds) {
    OrderedJson& entry = json["seeds"].emplace_back(OrderedJson::object());
    put(entry, "rho", seed.rho);
    put(entry, "interval", seed.interval);
    put(entry, "partial_rho", seed.partial);
    put(entry, "partial_interval", seed.partial_interval);
    put(entry, "naive_p", seed.naive_p);
  }
  json["placebos"] = OrderedJson::array();
  for (const FrequencyQuantity::Placebo& placebo : quantity.placebos) {
    OrderedJson& entry = json["placebos"].emplace_back(to_json(placebo.mean));
    put(entry, "difference", placebo.difference.value);
    put(entry, "difference_interval", placebo.difference.interval);
    entry["bins"] = to_json(placebo.bins);
  }
  json["bins"] = to_json(quantity.bins);
  return json;
}

}  // namespace

FrequencyReading frequency_reading(const FilteredArm& arm, std::span<const FilteredArm> placebos,
                                   std::span<const double> counts, const FrequencyOptions& options) {
  ASSERT(!arm.models.empty() && arm.models.size() == arm.seeds.size(), "{} models of {} seeds", arm.models.size(),
         arm.seeds.size());
  const FilteredPositions& first = arm.models.front();
  std::vector<const FilteredArm*> arms = {&arm};
  for (const FilteredArm& placebo : placebos) arms.push_back(&placebo);
  for (const FilteredArm* each : arms) check_alike(*each, first);
  CHECK(!first.read.item.empty(), "{}: its test inputs hold no item", printable(arm.name, 60));
  FrequencyReading reading{.arm = arm.name,
                           .placebos = {},
                           .seeds = arm.seeds,
                           .items_of_catalogue = counts.size(),
                           .items = 0,
                           .users = first.read.users(),
                           .positions = first.read.item.size(),
                           .options = options,
                           .layers = std::vector<FrequencyReading::Layer>(first.layers.size())};
  for (const FilteredArm& placebo : placebos) reading.placebos.push_back(placebo.name);
  for (std::size_t layer = 0; layer < first.layers.size(); ++layer) {
    for (const Values which : both) {
      FrequencyQuantity& quantity = quantity_of(reading.layers[layer], which);
      std::vector<std::vector<double>> means;  // [arm]
      means.reserve(arms.size());
      for (const FilteredArm* each : arms) means.push_back(mean_of_models(*each, layer, which));
      std::vector<std::span<const double>> quantities;  // of each arm its models, then their mean
      for (std::size_t i = 0; i < arms.size(); ++i) {
        for (const FilteredPositions& model : arms[i]->models) quantities.emplace_back(model.layers[layer].*which);
        quantities.emplace_back(means[i]);
      }
      const std::vector<FrequencyCorrelation> found = frequency_correlations(first.read, counts, quantities, options);
      const std::span<const FrequencyCorrelation> all(found), models = all.first(arm.models.size());
      quantity.mean = over_seeds(models);
      quantity.bins = found[arm.models.size()].bins;
      quantity.seeds.assign(models.begin(), models.end());
      std::size_t begin = arm.models.size() + 1;
      for (const FilteredArm& placebo : placebos) {
        const auto placebo_models = all.subspan(begin, placebo.models.size());
        begin += placebo.models.size() + 1;
        quantity.placebos.push_back(
            {over_seeds(placebo_models), difference_to(models, placebo_models), found[begin - 1].bins});
      }
      reading.items = quantity.seeds.front().items;
    }
  }
  return reading;
}

OrderedJson to_json(const FrequencyReading& reading) {
  OrderedJson json = {
      {"arm", reading.arm},
      {"seeds", reading.seeds},
      {"users", reading.users},
      {"positions", reading.positions},
      {"items_with_a_position", reading.items},
      {"items", reading.items_of_catalogue},
      {"groups", std::min<std::size_t>(reading.users, static_cast<std::size_t>(reading.options.groups))},
      {"seed", reading.options.seed},
      {"paper",
       {{"where", paper_frequency.where},
        {"gain_rho", paper_frequency.gain},
        {"precision_rho", paper_frequency.precision}}}};
  if (!reading.options.against.empty()) json["against"] = reading.options.against;
  json["placebos"] = reading.placebos;
  json["layers"] = OrderedJson::array();
  for (const FrequencyReading::Layer& layer : reading.layers)
    json["layers"].push_back({{"gain", to_json(layer.gain)}, {"precision", to_json(layer.precision)}});
  return json;
}

}  // namespace gainlens::analyses
