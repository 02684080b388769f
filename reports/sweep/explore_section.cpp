#include "analyses/sink_keys.h"
#include "core/quantity.h"
#include "reports/figures/plot_script.h"
#include "reports/page/embedded_data.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "runfile/first_key.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gainlens::reports {
namespace {

/// Quantities that the report's own scatters set against each other: x, y.
constexpr std::pair<std::string_view, std::string_view> scatters[] = {
    {"bos_mass", "kalman_gain"}, {"bos_mass", "kalman_gain_scaled"}, {"bos_mass", "without_first_kalman_gain"},
    {"n_eff", "kalman_gain"},    {"sink_bound", "bos_mass"},
};

/// Groups of sinks of one layer and length that a page holds: those with the largest mass of a head.
constexpr std::size_t max_groups = 24;

/// A label for lists and axes, which take plain text alone. Means of one scalar over different queries say which.
std::string plain_label(const runfile::HeadQuantity& quantity, const HeadMeans& means) {
  const auto alike =
      std::count_if(means.quantities.begin(), means.quantities.end(),
                    [&](const HeadMeans::Quantity& other) { return other.info.label == quantity.label; });
  std::string label(quantity.label), over = quantity.averaged_over();
  if (const auto at = label.find("lambda"); at != std::string::npos) label.replace(at, 6, "λ");
  if (const auto at = over.find(" queries"); at != std::string::npos) over.erase(at, 8);
  return alike > 1 ? fmt::format("{} ({})", label, over) : label;
}

/// Empty for plain numbers.
std::string plain_unit(const runfile::HeadQuantity& quantity) {
  if (quantity.unit == "1") return {};
  std::string unit(quantity.unit);
  if (const auto at = unit.find("^2"); at != std::string::npos) unit.replace(at, 2, "²");
  return unit;
}

/// "0, 17, 40, 41 and 9 more": the positions of a group over its chunks, each once.
std::string positions_of(const analyses::SinkGroup& group) {
  constexpr std::size_t most = 4;
  std::set<std::int64_t> positions;
  for (const analyses::ChunkPositions& chunk : group.positions)
    positions.insert(chunk.positions.begin(), chunk.positions.end());
  std::vector<std::int64_t> first(positions.begin(), positions.end());
  const std::size_t all = first.size();
  first.resize(std::min(all, most));
  return fmt::format("{}{}", fmt::join(first, ", "), all > most ? fmt::format(" and {} more", all - most) : "");
}

/// The sink mass of every head by token: for each token text of a layer its mass in each head. Rows are
/// [length, layer, text, positions, chunks], places on the axes of the page's numbers. "full" lists for each length the
/// heads, by their place over all layers, whose mass may be larger; "mass" is the place of the mass among quantities.
void add_sinks(const SweepRun& run, const HeadMeans& means, OrderedJson& words, EmbeddedData& data) {
  if (!analyses::has_sink_keys(run.reader())) {
    words["sinks_reason"] =
        "This run was made by an older version, which measured sinks at keys 0 to 7 alone and stored no tokens.";
    return;
  }
  const analyses::SinkKeys& sinks = run.of(sink_keys_of);
  const std::vector<std::int64_t>& layers = run.reader().layers();
  std::vector<double> masses;
  OrderedJson rows = OrderedJson::array();
  std::size_t left_out = 0;
  std::pair<std::int64_t, std::int64_t> place{-1, -1};
  std::size_t there = 0;
  for (const analyses::SinkGroup& group : sinks.groups) {
    const auto length = std::find_if(means.lengths.begin(), means.lengths.end(),
                                     [&](const analyses::Length& one) { return one.tokens == group.length; });
    if (length == means.lengths.end()) continue;
    if (*std::max_element(group.mass.begin(), group.mass.end()) == 0) continue;  // seen by early queries only
    if (place != std::pair(group.length, group.layer)) there = 0;
    place = {group.length, group.layer};
    if (++there > max_groups) {
      ++left_out;
      continue;
    }
    rows.push_back({length - means.lengths.begin(),
                    std::find(layers.begin(), layers.end(), group.layer) - layers.begin(),
                    analyses::label_of(group.text, group.token), positions_of(group), group.chunks});
    masses.insert(masses.end(), group.mass.begin(), group.mass.end());
  }
  OrderedJson full = OrderedJson::array();
  for (const analyses::Length& length : means.lengths) {
    OrderedJson heads = OrderedJson::array();
    for (std::size_t head = 0; head < means.layers * means.heads; ++head)
      if (sinks.mass_of(length, head / means.heads, head % means.heads).at_least) heads.push_back(head);
    full.push_back(std::move(heads));
  }
  const auto mass = std::find_if(means.quantities.begin(), means.quantities.end(),
                                 [](const HeadMeans::Quantity& one) { return one.info.name == "sink_mass"; });
  words["sinks"] = {
      {"full", full},
      {"mass", mass - means.quantities.begin()},
      {"note", left_out == 0 ? std::string()
                             : fmt::format(" The page holds the {} tokens with most mass of each layer.", max_groups)},
      {"rows", rows},
      {"at", data.add(masses)}};
}

OrderedJson words_of(const SweepRun& run, const std::string& label, EmbeddedData& data) {
  const HeadMeans& means = run.of(head_means);
  const runfile::RunReader& reader = run.reader();
  OrderedJson words;
  words["label"] = label;
  words["layers"] = reader.layers();
  words["heads"] = means.heads;
  words["attention"] = reader.attention();
  words["lengths"] = OrderedJson::array();
  for (const analyses::Length& length : means.lengths) {
    // Where the window hides BOS, its mass is 0 by construction.
    OrderedJson hidden = OrderedJson::array();
    for (std::size_t layer = 0; layer < means.layers; ++layer) {
      if (runfile::first_key_visibility(reader.attention()[layer], length.tokens) == runfile::FirstKey::hidden)
        hidden.push_back(layer);
    }
    words["lengths"].push_back({{"tokens", length.tokens},
                                {"label", format_count(length.tokens)},
                                {"chunks", length.samples.size()},
                                {"hidden", hidden}});
  }
  words["quantities"] = OrderedJson::array();
  for (const HeadMeans::Quantity& quantity : means.quantities) {
    words["quantities"].push_back({{"name", quantity.info.name},
                                   {"label", plain_label(quantity.info, means)},
                                   {"unit", plain_unit(quantity.info)},
                                   {"over", quantity.info.averaged_over()},
                                   {"meaning", quantity.info.meaning},
                                   {"at", data.add(quantity.values)}});
  }
  add_sinks(run, means, words, data);
  return words;
}

std::vector<Block> explore_blocks(Runs runs) {
  EmbeddedData data;
  const std::vector<std::string> labels = labels_of(runs);
  data.words["colours"] = viridis_colours();
  data.words["scatters"] = scatters;
  data.words["runs"] = OrderedJson::array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    data.words["runs"].push_back(words_of(runs[i], labels.empty() ? "" : labels[i], data));
  return {Html{embedded_part("explore", data)}};
}

}  // namespace

const Section<SweepRun> explore_section = {.name = "explore",
                                           .title = "Explore",
                                           .question = "What are the numbers of one head, and where does it stand?",
                                           .blocks = explore_blocks,
                                           .scripted = true};

}  // namespace gainlens::reports
