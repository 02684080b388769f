#include "analyses/cells.h"
#include "analyses/heatmap.h"
#include "core/check.h"
#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace gainlens::reports {
namespace {

using analyses::Heatmap;

constexpr runfile::HeadQuantity sink_mass{"sink_mass",
                                          "",
                                          runfile::Presence::statistics,
                                          "sink mass",
                                          "1",
                                          "1",
                                          runfile::Window::second_half,
                                          runfile::Stored::nowhere,
                                          4,
                                          "attention weight of the keys with a column mean of at least 1/sqrt(n), "
                                          "or 0.1 from n = 100 on"};

std::string title_of(const Heatmap& map) {
  const runfile::HeadQuantity& quantity = map.quantity;
  const std::string label(quantity.label);
  return to_plot(quantity.unit == "1" ? label : fmt::format("{} ({})", label, quantity.unit));
}

/// Smallest and largest drawn value of one quantity over the runs, which share its colours.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  /// Whether the scale is logarithmic. Over more than a decade a linear scale would give most heads one colour.
  bool logarithmic() const { return low > 0 && high >= 10 * low; }
};

/// 1, 2 and 5 of each decade; of many decades the powers of ten.
std::string decade_ticks(const Range& range) {
  const bool all = range.high < 300 * range.low;
  std::string text;
  const int first = static_cast<int>(std::floor(std::log10(range.low)));
  const int last = static_cast<int>(std::floor(std::log10(range.high)));
  for (int decade = first; decade <= last; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, decade);
      if (tick < range.low || tick > range.high || (!all && digit != 1)) continue;
      text += fmt::format("{}'{:.3g}' {:.9g}", text.empty() ? "" : ", ", tick, tick);
    }
  }
  return "(" + text + ")";
}

/// One map among the panels.
struct MapPanel {
  const Heatmap* map;
  const SweepRun* run;
  std::string label;  ///< of the run; empty where there is one
};

/// The cells of a map by how they are drawn.
struct CellRows {
  Rows valued, missing, constructed;
};

CellRows cells_of(const Heatmap& map) {
  CellRows cells;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::size_t head = 0; head < map.heads; ++head) {
      const double value = map.at(layer, head), x = static_cast<double>(head), y = static_cast<double>(layer);
      if (!std::isfinite(value)) {
        cells.missing.push_back({x, y});
      } else if (map.by_construction[layer]) {
        cells.constructed.push_back({x, y});
      } else {
        cells.valued.push_back({x, y, value});
      }
    }
  }
  return cells;
}

std::map<std::string_view, Range> ranges_of(const std::vector<MapPanel>& panels) {
  std::map<std::string_view, Range> ranges;
  for (const MapPanel& panel : panels) {
    Range& range = ranges[panel.map->quantity.name];
    for (const std::vector<double>& cell : cells_of(*panel.map).valued) {
      range.low = std::min(range.low, cell[2]);
      range.high = std::max(range.high, cell[2]);
    }
  }
  return ranges;
}

void draw(PlotScript& script, const MapPanel& panel, std::size_t index, const Range& range, bool alone) {
  const Heatmap& map = *panel.map;
  const CellRows cells = cells_of(map);
  const std::string title = fmt::format("{}{}", title_of(map), panel.label.empty() ? "" : ", " + plain(panel.label));
  if (alone) {
    script.line("unset label").line("set label \"{}\" at graph 0, graph 1 left offset 0, 0.8", title);
  } else {
    script.panel(index, title);
  }
  script.line("set xrange [-0.5:{}]", static_cast<double>(map.heads) - 0.5)
      .line("set yrange [-0.5:{}]", static_cast<double>(map.layers.size()) - 0.5);
  script.line("set xtics ({})", even_ticks(map.heads, 16, [](std::size_t head) { return fmt::format("{}", head); }));
  script.line("set ytics ({})", layer_ticks(*panel.run, global_layers(*panel.run).empty() ? 14 : 36));
  script.line("{} logscale cb", range.logarithmic() ? "set" : "unset");
  script.line("set cbtics {} out scale 0.2 offset -0.6,0", range.logarithmic() ? decade_ticks(range) : "autofreq");
  script.line("set cbrange [{}]", range.low < range.high ? fmt::format("{:.9g}:{:.9g}", range.low, range.high) : "*:*");
  std::string plot;
  const auto add = [&](const char* name, const Rows& rows, std::string_view columns, std::string_view fill) {
    if (rows.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, rows);
    plot += fmt::format("{}${} using {} with boxxyerror {}", plot.empty() ? "" : ", ", block, columns, fill);
  };
  add("cells", cells.valued, "1:2:(0.5):(0.5):3",
      "fillcolor palette fillstyle solid 1 border linecolor rgb '#FFFFFF' notitle");
  add("constructed", cells.constructed, "1:2:(0.5):(0.5)",
      "fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb '#FFFFFF' title '0 by construction'");
  add("missing", cells.missing, "1:2:(0.5):(0.5)",
      "fillcolor rgb '#7A7A7A' fillstyle pattern 4 border linecolor rgb '#7A7A7A' title 'no value'");
  script.line("plot {}", plot);
}

/// The panels of a figure: of one run its maps side by side; of several the runs side by side, or below each other
/// where each has two maps.
PanelGrid grid_of(const std::vector<MapPanel>& panels, std::size_t maps) {
  std::size_t max_layers = 0;
  bool key = false;
  for (const MapPanel& panel : panels) {
    max_layers = std::max(max_layers, panel.map->layers.size());
    const CellRows cells = cells_of(*panel.map);
    key = key || !cells.missing.empty() || !cells.constructed.empty();
  }
  const std::size_t columns = maps > 1 ? maps : std::min<std::size_t>(panels.size(), 3);
  const std::size_t rows = (panels.size() + columns - 1) / columns;
  PanelGrid grid{columns > 1 ? page_width : column_width, 0};
  grid.columns = static_cast<int>(columns);
  grid.rows = static_cast<int>(rows);
  grid.left = 0.4;
  grid.right = 0.52;
  grid.across = 0.95;
  grid.bottom = key ? 0.55 : 0.38;
  grid.down = key ? 0.8 : 0.65;
  const double panel = std::clamp(0.125 * static_cast<double>(max_layers), 1.1, 4.2);  // every layer a row of its own
  grid.height = grid.top + grid.bottom + panel * static_cast<double>(rows) + grid.down * static_cast<double>(rows - 1);
  return grid;
}

/// The run's maps of the group; none where it has no such group.
std::span<const HeatmapGroup::Map> maps_of(const SweepRun& run, const std::string& name) {
  for (const HeatmapGroup& group : run.of(heatmap_groups)) {
    if (group.name == name) return group.maps;
  }
  return {};
}

std::string first_reason(Runs runs, const std::string& group) {
  for (const auto& [quantity, map] : maps_of(runs.front(), group)) {
    if (!map) return map.reason();
  }
  return "no run has a value of it";
}

/// heatmap-<name>: one panel for each map of the group, in one colour scale for all runs.
/// @param group  name of a HeatmapGroup
Maybe<Figure> heatmap_figure(Runs runs, const std::string& group) {
  std::vector<MapPanel> panels;
  std::size_t maps = 0;
  for (const SweepRun& run : runs) {
    std::size_t present = 0;
    for (const auto& [quantity, map] : maps_of(run, group)) {
      // K itself shows the scale of each layer's values. It is drawn where the run has no scaled K.
      const bool better =
          quantity == "kalman_gain" &&
          std::any_of(maps_of(run, group).begin(), maps_of(run, group).end(), [](const HeatmapGroup::Map& other) {
            return other.quantity == "kalman_gain_scaled" && other.map;
          });
      if (!map || better) continue;
      panels.push_back({&*map, &run, runs.size() > 1 ? run.label() : ""});
      ++present;
    }
    maps = std::max(maps, present);
  }
  if (panels.empty()) return Maybe<Figure>::none(first_reason(runs, group));
  const std::map<std::string_view, Range> ranges = ranges_of(panels);

  const PanelGrid grid = grid_of(panels, maps);
  PanelFigure script(grid);
  script.viridis()
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.2")
      .line("set cbtics out scale 0.2 offset -0.6,0")
      .line("set colorbox noborder");
  script.line("set xlabel 'head' offset 0,0.5").line("set ylabel 'layer' offset 1.4,0");
  script.line("set key at graph 0, graph {:.5f} left center Left reverse",
              -0.46 / grid.panel_height());  // below the x axis
  for (std::size_t i = 0; i < panels.size(); ++i)
    draw(script, panels[i], i, ranges.at(panels[i].map->quantity.name), panels.size() == 1);
  return script.figure("heatmap-" + group);
}

CsvTable map_csv(const analyses::Heatmap& map) {
  CsvTable table{fmt::format("heatmap-{}", map.quantity.name), {"layer", "head", std::string(map.quantity.name)}, {}};
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::size_t head = 0; head < map.heads; ++head)
      table.rows.push_back({map.layers[layer], cell(head), map.at(layer, head)});
  }
  return table;
}

/// The columns of one dataset of /summary: [length, layer, head, column].
struct HeadColumns {
  std::vector<std::string> names;
  std::vector<double> values;
};

/// The smallest over chunks, of each chunk's smallest; of all else the mean over chunks. NaN if no chunk has a value.
double over_chunks(const analyses::Cells& cells, const std::string& name, const analyses::Length& length,
                   std::size_t layer, std::size_t head, std::size_t last) {
  std::size_t left_out = 0;
  if (!name.ends_with("_min")) return analyses::mean_over_samples(cells, length, layer, head, last, left_out);
  double least = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t sample : length.samples)
    least = std::fmin(least, cells.at(length.index, sample, layer, head, last));  // fmin ignores NaN
  return least;
}

/// Every number of a head that the run has under /summary and that `means` leaves out: variances, smallest numbers, and
/// those of the first keys, with a column for each key.
std::vector<HeadColumns> further_columns(const SweepRun& run, const HeadMeans& means) {
  std::vector<HeadColumns> all;
  for (const runfile::DatasetInfo& info : runfile::schema()) {
    const bool by_head = std::find(info.axes.begin(), info.axes.end(), runfile::Axis::head) != info.axes.end();
    const bool is_mean =
        std::any_of(means.quantities.begin(), means.quantities.end(),
                    [&](const HeadMeans::Quantity& quantity) { return quantity.info.name == info.name; });
    if (info.group != runfile::Group::summary || !by_head || is_mean) continue;
    const auto cells = analyses::Cells::read(run.reader(), fmt::format("summary/{}", info.name));
    if (!cells) continue;
    HeadColumns columns;
    const bool by_key = info.axes.back() == runfile::Axis::key;
    for (std::size_t last = 0; last < cells->last(); ++last)
      columns.names.push_back(by_key ? fmt::format("{}_{}", info.name, last) : info.name);
    for (const analyses::Length& length : means.lengths) {
      for (std::size_t layer = 0; layer < means.layers; ++layer) {
        for (std::size_t head = 0; head < means.heads; ++head) {
          for (std::size_t last = 0; last < cells->last(); ++last)
            columns.values.push_back(over_chunks(*cells, info.name, length, layer, head, last));
        }
      }
    }
    all.push_back(std::move(columns));
  }
  return all;
}

/// Every head at every length: its kind of attention, and all numbers of its summary over chunks.
CsvTable heads_csv(const SweepRun& run) {
  const runfile::RunReader& reader = run.reader();
  const HeadMeans& means = run.of(head_means);
  const std::vector<HeadColumns> further = further_columns(run, means);
  CsvTable table{"heads", {"tokens", "chunks", "layer", "head", "kv_head", "attention", "key_0_visible"}, {}};
  for (const HeadMeans::Quantity& quantity : means.quantities) table.header.emplace_back(quantity.info.name);
  const bool has_sink_mass = !means.quantities.empty() && means.quantities.back().info.name == "sink_mass";
  if (has_sink_mass) table.header.emplace_back("sink_mass_at_least");
  for (const HeadColumns& columns : further)
    table.header.insert(table.header.end(), columns.names.begin(), columns.names.end());
  const auto heads = static_cast<std::size_t>(reader.heads());
  for (std::size_t at = 0; at < means.lengths.size(); ++at) {
    const analyses::Length& length = means.lengths[at];
    for (std::size_t layer = 0; layer < reader.layers().size(); ++layer) {
      const std::string& attention = reader.attention()[layer];
      const bool visible = runfile::first_key_visibility(attention, length.tokens) != runfile::FirstKey::hidden;
      for (std::size_t head = 0; head < heads; ++head) {
        std::vector<Cell> row = {length.tokens,
                                 cell(length.samples.size()),
                                 reader.layers()[layer],
                                 cell(head),
                                 reader.kv_head_of(layer, static_cast<std::int64_t>(head)),
                                 attention,
                                 std::int64_t{visible}};
        for (const HeadMeans::Quantity& quantity : means.quantities)
          row.emplace_back(means.at(quantity, at, layer, head));
        if (has_sink_mass) row.emplace_back(std::int64_t{run.of(sink_keys_of).mass_of(length, layer, head).at_least});
        const std::size_t place = (at * means.layers + layer) * means.heads + head;
        for (const HeadColumns& columns : further) {
          const std::size_t count = columns.names.size();
          for (std::size_t i = 0; i < count; ++i) row.emplace_back(columns.values[place * count + i]);
        }
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

/// A figure of maps: one line for each. To add a heat map, add a line.
struct MapFigure {
  std::string_view name;    ///< dataset under summary/
  std::string_view beside;  ///< a second dataset in the same figure; empty: none
  std::string_view title;
  std::string_view purpose;
};
constexpr MapFigure map_figures[] = {
    {"n_eff", "", "Effective sample size by head", "Which heads average over many keys, and which over few."},
    {"kalman_gain", "kalman_gain_scaled", "Scaled K by head",
     "Which heads carry much evidence against a prior of precision 1, on the scale of their values."},
    {"bos_mass", "", "BOS mass by head", "Which heads are sinks, and at which depth."},
    {"entropy", "", "Entropy by head", "How evenly each head spreads its attention."},
    {"gate", "", "Attention gate by head", "Which heads the model's trained gate opens, and which it closes."},
};

const MapFigure& figure_named(const std::string& name) {
  const auto found = std::find_if(std::begin(map_figures), std::end(map_figures),
                                  [&](const MapFigure& figure) { return figure.name == name; });
  ASSERT(found != std::end(map_figures), "no figure of maps is called {}", name);
  return *found;
}

/// The first map of the group that the run has; null where it has none.
const analyses::Heatmap* first_map(const SweepRun& run, const std::string& group) {
  for (const HeatmapGroup& candidate : run.of(heatmap_groups)) {
    if (candidate.name != group) continue;
    for (const auto& [quantity, map] : candidate.maps) {
      if (map) return &*map;
    }
  }
  return nullptr;
}

Caption heatmap_caption(Runs runs, const std::string& name) {
  const auto mapped =
      std::find_if(runs.begin(), runs.end(), [&](const SweepRun& run) { return first_map(run, name) != nullptr; });
  if (mapped == runs.end()) return {};
  const auto tokens = [&](const SweepRun& run) {
    const analyses::Heatmap* map = first_map(run, name);
    return map ? format_count(map->length.tokens) : std::string();
  };
  std::string shows = fmt::format("Mean over chunks of {} tokens, {}.", runs_said(runs, tokens),
                                  first_map(*mapped, name)->quantity.averaged_over());
  if (runs.size() > 1) shows += " The runs share the colour scale.";
  const auto& kinds = mapped->reader().attention();
  if (std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) { return kind != kinds.front(); }))
    shows += " Layers with global attention have bold numbers.";
  return {shows, std::string(figure_named(name).purpose),
          name == "kalman_gain"
              ? "What K is by itself: it depends on the scale of the values, which is arbitrary. Therefore the map "
                "shows scaled "
                "K. K is in tables/heatmap-kalman_gain.csv."
              : "A mean over queries and chunks hides how a head differs from query to query. Head numbers carry no "
                "order."};
}

/// The names of the figures that some run has, in the order of the table.
std::vector<std::string> group_names(Runs runs) {
  std::vector<std::string> names;
  for (const MapFigure& figure : map_figures) {
    const bool present = std::any_of(runs.begin(), runs.end(), [&](const SweepRun& run) {
      const auto& groups = run.of(heatmap_groups);
      return std::any_of(groups.begin(), groups.end(),
                         [&](const HeatmapGroup& group) { return group.name == figure.name; });
    });
    if (present) names.emplace_back(figure.name);
  }
  return names;
}

/// Figures are named after their first dataset; each dataset has a CSV file.
std::vector<std::string> heads_files() {
  std::vector<std::string> stems = {"heads"};
  for (const MapFigure& figure : map_figures) {
    for (const std::string_view name : {figure.name, figure.beside}) {
      if (!name.empty()) stems.push_back(fmt::format("heatmap-{}", name));
    }
  }
  return stems;
}

std::vector<Block> heads_blocks(Runs runs) {
  std::vector<Block> all;
  for (const std::string& name : group_names(runs)) {
    all.push_back(CaptionedFigure{"heatmap-" + name, std::string(figure_named(name).title), heatmap_caption(runs, name),
                                  heatmap_figure(runs, name)});
  }
  all.push_back(Html{
      "<p><code>tables/heads.csv</code> holds every head at every length: its kind of attention (global or a window), "
      "its sink mass, and over chunks all its numbers of <code>/summary</code>.</p>\n"});
  return all;
}

void add_heads_json(const SweepRun& run, OrderedJson& summary) {
  OrderedJson& maps = summary["heatmaps"] = OrderedJson::object();
  for (const HeatmapGroup& group : run.of(heatmap_groups)) {
    for (const auto& [quantity, map] : group.maps) put(maps, quantity, map);
  }
}

std::vector<CsvTable> heads_tables(const SweepRun& run) {
  std::vector<CsvTable> all = {heads_csv(run)};
  for (const HeatmapGroup& group : run.of(heatmap_groups)) {
    for (const auto& [quantity, map] : group.maps) {
      if (map) all.push_back(map_csv(*map));
    }
  }
  return all;
}

}  // namespace

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

HeadMeans head_means(const SweepRun& run) {
  const runfile::RunReader& reader = run.reader();
  HeadMeans means{
      analyses::usable_lengths(reader), {}, reader.layers().size(), static_cast<std::size_t>(reader.heads())};
  for (const runfile::HeadQuantity& info : runfile::head_quantities()) {
    const auto cells = analyses::Cells::read(reader, fmt::format("summary/{}", info.name));
    if (!cells) continue;
    HeadMeans::Quantity quantity{info, {}};
    std::size_t left_out = 0;
    for (const analyses::Length& length : means.lengths) {
      for (std::size_t layer = 0; layer < means.layers; ++layer) {
        for (std::size_t head = 0; head < means.heads; ++head)
          quantity.values.push_back(analyses::mean_over_samples(*cells, length, layer, head, 0, left_out));
      }
    }
    means.quantities.push_back(std::move(quantity));
  }
  if (!analyses::has_sink_keys(reader) || run.of(sink_keys_of).first_keys_only) return means;
  HeadMeans::Quantity mass{sink_mass, {}};
  for (const analyses::Length& length : means.lengths) {
    for (std::size_t layer = 0; layer < means.layers; ++layer) {
      for (std::size_t head = 0; head < means.heads; ++head)
        mass.values.push_back(run.of(sink_keys_of).mass_of(length, layer, head).value);
    }
  }
  means.quantities.push_back(std::move(mass));
  return means;
}

std::vector<HeatmapGroup> heatmap_groups(const SweepRun& run) {
  std::vector<HeatmapGroup> groups;
  for (const MapFigure& figure : map_figures) {
    const runfile::Presence presence = runfile::head_quantity(figure.name).presence;
    if (presence == runfile::Presence::gate && !run.request().gated) continue;  // nothing that is left out
    if (presence == runfile::Presence::sink_logits && !run.request().sink_logits) continue;
    HeatmapGroup group{std::string(figure.name), {}};
    for (const std::string_view name : {figure.name, figure.beside}) {
      if (!name.empty()) group.maps.push_back({name, analyses::heatmap(run.reader(), name)});
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

const Section<SweepRun> heads_section = {.name = "heads",
                                         .title = "Where in the model",
                                         .question = "Where in the model are n_eff, K, BOS mass and entropy high?",
                                         .files = heads_files(),
                                         .keys = {"heatmaps"},
                                         .blocks = heads_blocks,
                                         .add_json = add_heads_json,
                                         .tables = heads_tables};

}  // namespace gainlens::reports
