#include "analyses/sink_vs_k.h"
#include "core/quantity.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/sweep/sink_map.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace gainlens::reports {
namespace {

/// The heads of a map by how they are drawn.
struct MapRows {
  Rows valued, missing, hidden, bos, elsewhere, early;
};

MapRows rows_of_map(const SinkMap& map) {
  MapRows rows;
  for (const MappedHead& head : map.heads) {
    const double x = static_cast<double>(head.head), y = static_cast<double>(head.layer_position);
    if (head.hidden) {
      rows.hidden.push_back({x, y});
    } else if (!std::isfinite(head.mass.value)) {
      rows.missing.push_back({x, y});
    } else {
      rows.valued.push_back({x, y, head.mass.value});
    }
    if (head.is_sink) (head.early ? rows.early : head.elsewhere ? rows.elsewhere : rows.bos).push_back({x, y});
  }
  return rows;
}

/// The legend below the panels: what occurs in some of them.
std::vector<LegendEntry> legend_of_maps(const std::vector<MapRows>& maps) {
  std::vector<LegendEntry> legend;
  const auto any = [&](Rows MapRows::*rows) {
    return std::any_of(maps.begin(), maps.end(), [&](const MapRows& map) { return !(map.*rows).empty(); });
  };
  if (any(&MapRows::bos)) legend.push_back({"sink: BOS", colour::vermillion, 7});
  if (any(&MapRows::elsewhere)) legend.push_back({"sink: another token", colour::vermillion, 6});
  if (any(&MapRows::early)) legend.push_back({"sink for early queries only", colour::vermillion, 2});
  if (any(&MapRows::hidden)) legend.push_back({"BOS out of sight: not measured", "#D9D9D9", 5});
  if (any(&MapRows::missing)) legend.push_back({"no value", colour::grey, 4});
  return legend;
}

std::string plot_map(PlotScript& script, const MapRows& rows, std::size_t index, double row_height) {
  std::string plot;
  const auto add = [&](const char* name, const Rows& data, const std::string& how) {
    if (data.empty()) return;
    const std::string block = fmt::format("{}_{}", name, index);
    script.data(block, data);
    plot += fmt::format("{}${} using {} notitle", plot.empty() ? "" : ", ", block, how);
  };
  const std::string box = "1:2:(0.5):(0.5)";
  const double size = std::clamp(4.5 * row_height, 0.15, 0.6);
  add("cells", rows.valued,
      box + ":(100*$3) with boxxyerror fillcolor palette fillstyle solid 1 border linecolor rgb '#FFFFFF'");
  add("hidden", rows.hidden,
      box + " with boxxyerror fillcolor rgb '#D9D9D9' fillstyle solid 1 border linecolor rgb '#FFFFFF'");
  add("missing", rows.missing,
      box + " with boxxyerror fillcolor rgb '#7A7A7A' fillstyle pattern 4 border linecolor rgb '#7A7A7A'");
  add("bos", rows.bos,
      fmt::format("1:2 with points pointtype 7 pointsize {:.3f} linecolor rgb '{}'", size, colour::vermillion));
  // Rings and crosses on a white ground are seen on every colour.
  add("rings", rows.elsewhere,
      fmt::format("1:2 with points pointtype 7 pointsize {:.3f} linecolor rgb '#FFFFFF'", size));
  add("elsewhere", rows.elsewhere,
      fmt::format("1:2 with points pointtype 6 pointsize {:.3f} linewidth 1.6 linecolor rgb '{}'", size,
                  colour::vermillion));
  for (const auto& [name, width, line] :
       {std::tuple{"halos", 5.0, std::string_view("#FFFFFF")}, std::tuple{"early", 2.0, colour::vermillion}}) {
    add(name, rows.early,
        fmt::format("1:2 with points pointtype 2 pointsize {:.3f} linewidth {} linecolor rgb '{}'", 0.8 * size, width,
                    line));
  }
  return plot;
}

/// Layer x head, coloured by the attention that goes to sinks; a dot where the sink is BOS, a ring where it is another
/// token. Several runs stand side by side with one scale of colours.
Maybe<Figure> sink_map_figure(Runs runs) {
  std::vector<MapRows> maps;
  std::vector<const SweepRun*> mapped;
  std::size_t max_layers = 0;
  double largest = 0;
  for (const SweepRun& run : runs) {
    const auto& map = run.of(sink_map);
    if (!map) continue;
    maps.push_back(rows_of_map(*map));
    mapped.push_back(&run);
    max_layers = std::max(max_layers, run.reader().layers().size());
    for (const std::vector<double>& cell : maps.back().valued) largest = std::max(largest, cell[2]);
  }
  if (mapped.empty()) return Maybe<Figure>::none(runs.front().of(sink_map).reason());

  const bool one = mapped.size() == 1;
  const double width = one ? column_width : page_width;
  PanelGrid grid{width, 0};
  grid.columns = static_cast<int>(std::min<std::size_t>(mapped.size(), 3));
  grid.rows = static_cast<int>((mapped.size() + 2) / 3);
  grid.left = 0.4;
  grid.right = 0.52;
  grid.across = 0.95;
  grid.bottom = 0.4;
  const double panel = std::clamp(0.125 * static_cast<double>(max_layers), 1.1, 2.5);  // it has to fit a first screen
  grid.height = grid.top + grid.bottom + panel * grid.rows + grid.down * (grid.rows - 1);

  PanelFigure script(grid, legend_of_maps(maps));
  script.viridis()
      .line("unset grid")
      .line("set border 0")
      .line("set tics out scale 0.2")
      .line("set cbtics autofreq out scale 0.2 offset -0.6,0")
      .line("set cbrange [0:{:.9g}]", 100 * std::max(largest, analyses::sink_thresholds[0]))  // no sink: no bright cell
      .line("set format cb '%g%%'")
      .line("set colorbox noborder")
      .line("unset key");
  script.line("set xlabel 'head' offset 0,0.5").line("set ylabel 'layer' offset 1.4,0");
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const SinkMap& map = *mapped[i]->of(sink_map);
    const std::string what = map.everywhere ? "sink mass" : "BOS mass";
    if (one) {
      script.line("unset label").line("set label \"{}\" at graph 0, graph 1 left offset 0, 0.8", what);
      script.draw_legend();
    } else {
      script.panel(i, fmt::format("{}, {}", what, plain(mapped[i]->label())));
    }
    const auto heads = static_cast<std::size_t>(mapped[i]->reader().heads());
    const auto layers = mapped[i]->reader().layers().size();
    script.line("set xrange [-0.5:{}]", static_cast<double>(heads) - 0.5)
        .line("set yrange [-0.5:{}]", static_cast<double>(layers) - 0.5);
    script.line("set xtics ({})", even_ticks(heads, 16, [](std::size_t head) { return fmt::format("{}", head); }));
    script.line("set ytics ({})", layer_ticks(*mapped[i], static_cast<std::size_t>(panel / 0.1)));
    script.line("plot {}", plot_map(script, maps[i], i, panel / static_cast<double>(layers)));
  }
  return script.figure("sink-map");
}

constexpr std::size_t max_strong_heads = 5;

std::string dressed_token(const std::string& token) {
  return token == "BOS" ? token : "<code class=\"token\">" + escape_html(token) + "</code>";
}

/// What the map of a run that looked at BOS alone leaves open.
std::string not_looked_for(const SweepRun& run) {
  const auto& map = run.of(sink_map);
  if (!map || map->everywhere) return {};
  return fmt::format(
      "This run was made by an older version, which measured sinks at keys 0 to 7 alone: sinks at other tokens are not "
      "known{}. A new sweep finds them.",
      std::any_of(map->heads.begin(), map->heads.end(), [](const MappedHead& head) { return head.hidden; })
          ? ", nor any sink of the layers in grey"
          : "");
}

/// How n_eff changes with the context, by kind of attention.
std::string evidence_sentence(const SweepRun& run) {
  const auto& kinds = run.of(evidence_by_kind);
  std::string text;
  for (const KindEvidence& kind : kinds) {
    const auto& judged = kind.full;
    if (judged.empty()) continue;
    const auto& [first, from] = judged.front();
    const auto& [last, to] = judged.back();
    const std::string where = kinds.size() > 1 ? fmt::format("{} layers", kind.attention) : "all layers";
    if (judged.size() == 1) {
      text += fmt::format("{}{} a query averages over {:.1f} keys (n_eff) at {} tokens", text.empty() ? "In " : "; in ",
                          where, to, format_count(last));
    } else {
      text += fmt::format("{}{} a query averages over {:.1f} keys (n_eff) at {} tokens and over {:.1f} at {}",
                          text.empty() ? "In " : "; in ", where, from, format_count(first), to, format_count(last));
    }
  }
  return text.empty() ? text : text + ".";
}

std::string words_html(Runs runs) {
  std::string html;
  for (const SweepRun& run : runs) {
    const auto& map = run.of(sink_map);
    // What was run stands in the heading where there is one run.
    std::string text = runs.size() > 1
                           ? fmt::format("<p class=\"lead\">{}{}</p>\n<p>", label_html(runs, run), run_line(run))
                           : std::string("<p>");
    if (map) text += sink_sentence(*map, dressed_token) + " ";
    text += to_html(evidence_sentence(run));
    if (const std::string open = not_looked_for(run); !open.empty()) text += " <em>" + to_html(open) + "</em>";
    html += text + "</p>\n";
  }
  return html;
}

Caption map_caption(Runs runs) {
  const auto mapped =
      std::find_if(runs.begin(), runs.end(), [](const SweepRun& run) { return bool(run.of(sink_map)); });
  if (mapped == runs.end()) return {};
  const SinkMap& map = *mapped->of(sink_map);
  const std::string tokens = runs_said(runs, [](const SweepRun& run) {
    return run.of(sink_map) ? format_count(run.of(sink_map)->length.tokens) : std::string();
  });
  const std::string what =
      map.everywhere
          ? fmt::format(
                "Sink mass: share of its attention that a head gives to keys with a column mean of at least "
                "1/sqrt(n), or 0.1 from n = 100 on. A "
                "head with a mark has a sink: a key that gets at least {:g} of the attention of the queries "
                "that see it, on average.",
                map.threshold)
          : fmt::format("BOS mass: share of its attention that a head gives to BOS. Sinks are heads above {:g}.",
                        map.threshold);
  std::string marks;
  if (map.early() > 0) marks += " A cross: the window hides the sink from all of these queries.";
  if (std::any_of(map.heads.begin(), map.heads.end(), [](const MappedHead& head) { return head.mass.at_least; }))
    marks += " Where a head's list of keys is full, the mass may be larger (at_least in tables/sink-map.csv).";
  return {fmt::format("{} Second-half queries, means over chunks of {} tokens.{}", what, tokens, marks),
          "Which heads have a sink, at which depth, and how much of their attention such keys take.",
          map.everywhere ? "What a sink does in the model: that takes an intervention."
                         : "Sinks at other tokens than BOS."};
}

PaperTable strongest_table(Runs runs) {
  const bool everywhere = std::any_of(
      runs.begin(), runs.end(), [](const SweepRun& run) { return run.of(sink_map) && run.of(sink_map)->everywhere; });
  PaperTable table{
      "strongest-sinks",
      fmt::format("The {} heads with the largest {}, and the token that takes most of it; tables/sink-map.csv has all "
                  "heads. Value: norm of the token's value by {}.",
                  max_strong_heads, everywhere ? "sink mass" : "BOS mass",
                  everywhere ? "the median of its KV head" : "the mean of later keys"),
      {{"layer.head"}, {"attention", true}, {"token", true, true}, {"mass"}, {"value"}},
      {}};
  bool at_least = false;
  add_runs(table, runs, [&](const SweepRun& run) {
    if (!run.of(sink_map)) return;
    for (const MappedHead* head : strongest(*run.of(sink_map), max_strong_heads)) {
      at_least = at_least || head->mass.at_least;
      table.rows.push_back({fmt::format("{}.{}", head->layer, head->head), head->attention, head->token,
                            shown(head->mass), shown(head->value_ratio)});
    }
  });
  if (at_least) table.caption += " ≥: the run's list of keys is full, so that the mass may be larger.";
  return table;
}

/// Lengths that a narrow table has room for: the shortest, and the longest ones.
std::vector<std::int64_t> shown_lengths(Runs runs) {
  constexpr std::size_t most = 4;
  std::vector<std::int64_t> lengths = drawn_lengths(runs);
  if (lengths.size() > most) lengths.erase(lengths.begin() + 1, lengths.end() - (most - 1));
  return lengths;
}

PaperTable evidence_table(Runs runs) {
  PaperTable table{"n_eff-by-attention",
                   "n_eff, the effective number of keys (1 / sum of squared weights), by kind of attention and context "
                   "length.  Last-quarter queries, all layers of a kind.",
                   {{"attention", true}},
                   {}};
  const std::vector<std::int64_t> lengths = shown_lengths(runs);
  for (const std::int64_t tokens : lengths) table.columns.push_back({format_count(tokens)});
  bool filling = false;
  add_runs(table, runs, [&](const SweepRun& run) {
    for (const KindEvidence& kind : run.of(evidence_by_kind)) {
      std::vector<std::string> row = {fmt::format("{}, {}", kind.attention, layers_in_words(kind.layers))};
      for (const std::int64_t tokens : lengths) {
        const auto found = kind.n_eff.find(tokens);
        const bool set_apart = found != kind.n_eff.end() && kind.set_apart.contains(tokens);
        filling = filling || set_apart;
        row.push_back(found == kind.n_eff.end() ? "–" : fmt::format("{:.1f}{}", found->second, set_apart ? "*" : ""));
      }
      table.rows.push_back(std::move(row));
    }
  });
  if (const std::size_t all = drawn_lengths(runs).size(); all > lengths.size())
    table.caption += fmt::format(" Of {} lengths the shortest and the {} longest.", all, lengths.size() - 1);
  if (filling) table.caption += " * The window is not full, or the length is beyond the model's positions.";
  return table;
}

/// Map and tables stand side by side where there is one run.
std::vector<Block> summary_blocks(Runs runs) {
  const CaptionedFigure map{"sink-map", "Where the sinks are", map_caption(runs), sink_map_figure(runs)};
  const Block bos = paragraph("BOS means the token at position 0 of every chunk. " + bos_sentence(runs));
  if (runs.size() > 1) return {Html{words_html(runs)}, map, strongest_table(runs), evidence_table(runs), bos};
  return {Html{words_html(runs)}, Html{"<div class=\"screen\">\n"}, map, Html{"<div>\n"}, strongest_table(runs),
          evidence_table(runs),   Html{"</div>\n</div>\n"},         bos};
}

void add_summary_json(const SweepRun& run, OrderedJson& summary) {
  OrderedJson& overview = summary["overview"] = OrderedJson::object();
  overview["model"] = model_name(run);
  overview["text"] = text_name(run);
  const auto& map = run.of(sink_map);
  if (!map) {
    overview["sinks"] = nullptr;
    overview["sinks_reason"] = map.reason();
    return;
  }
  overview["sentence"] = sink_sentence(*map, [](const std::string& token) { return token; });
  OrderedJson& sinks = overview["sinks"] = OrderedJson::object();
  sinks["tokens"] = map->length.tokens;
  sinks["measured"] = map->everywhere ? "every key" : "BOS alone";
  sinks["threshold"] = map->threshold;
  sinks["heads"] = map->heads.size();
  sinks["sink_heads"] = map->sinks();
  sinks["for_early_queries_only"] = map->early();
  OrderedJson& heads = sinks["strongest"] = OrderedJson::array();
  for (const MappedHead* head : strongest(*map, max_strong_heads)) {
    heads.push_back({{"layer", head->layer},
                     {"head", head->head},
                     {"token", head->token},
                     {"mass", head->mass.value},
                     {"mass_at_least", head->mass.at_least}});
    put(heads.back(), "value_ratio", head->value_ratio);
    put(heads.back(), "stream_ratio", head->stream_ratio);
  }
}

std::vector<CsvTable> summary_tables(const SweepRun& run) {
  const auto& map = run.of(sink_map);
  if (!map) return {};
  CsvTable table{"sink-map",
                 {"layer", "head", "attention", "mass", "at_least", "is_sink", "early_queries_only", "token",
                  "value_ratio", "stream_ratio"},
                 {}};
  for (const MappedHead& head : map->heads) {
    table.rows.push_back({head.layer, head.head, head.attention, head.hidden ? empty_cell() : Cell(head.mass.value),
                          std::int64_t{head.mass.at_least}, std::int64_t{head.is_sink}, std::int64_t{head.early},
                          head.token.empty() ? head.early_token : head.token, cell(head.value_ratio),
                          cell(head.stream_ratio)});
  }
  return {table};
}

}  // namespace

analyses::SinkKeys sink_keys_of(const SweepRun& run) {
  return analyses::sink_keys(run.reader());
}

const LengthFacts& longest_facts(const SweepRun& run) {
  const std::vector<LengthFacts>& facts = run.of(length_facts);
  const auto last = std::find_if(facts.rbegin(), facts.rend(),
                                 [](const LengthFacts& length) { return !length.length.samples.empty(); });
  return last == facts.rend() ? facts.back() : *last;
}

std::vector<KindEvidence> evidence_by_kind(const SweepRun& run) {
  const runfile::RunReader& reader = run.reader();
  const auto& by_kind = run.of(analyses::context_by_attention);
  std::vector<KindEvidence> found;
  const auto add = [&](const std::string& attention, const std::vector<analyses::ContextPoint>& points,
                       const std::vector<std::size_t>& layers) {
    KindEvidence kind{attention, analyses::original_layers(reader, layers), {}, {}, {}};
    for (const analyses::ContextPoint& point : points) {
      const auto n_eff = analyses::aggregate(reader, "n_eff", point.length, layers);
      if (!n_eff) continue;
      kind.n_eff[point.length.tokens] = n_eff->mean;
      if (point.set_apart.empty())
        kind.full.emplace_back(point.length.tokens, n_eff->mean);
      else
        kind.set_apart.insert(point.length.tokens);
    }
    if (!kind.n_eff.empty()) found.push_back(std::move(kind));
  };
  if (by_kind.empty()) add(reader.attention().front(), run.of(analyses::context).points, analyses::all_layers(reader));
  for (const analyses::KindContext& kind : by_kind) {
    std::vector<std::size_t> layers = analyses::all_layers(reader);
    std::erase_if(layers, [&](std::size_t layer) { return reader.attention()[layer] != kind.attention; });
    add(kind.attention, kind.context.points, layers);
  }
  // The kind that sees most first.
  std::stable_sort(found.begin(), found.end(), [](const KindEvidence& a, const KindEvidence& b) {
    return (a.attention == "global") > (b.attention == "global");
  });
  return found;
}

std::string run_line(const SweepRun& run) {
  const LengthFacts& longest = longest_facts(run);
  const std::string nll =
      longest.nll ? fmt::format("NLL {} nats per token at {}", with_interval(shown(longest.nll), longest.nll_interval),
                                format_count(longest.length.tokens))
                  : std::string("no NLL was measured");
  return to_html(fmt::format("Contexts up to {} tokens, {}; {}.", format_count(longest.length.tokens),
                             counted(longest.length.samples.size(), "chunk"), nll));
}

const Section<SweepRun> summary_section = {.name = "summary",
                                           .title = "Summary",
                                           .question =
                                               "What was run, which heads have a sink, and what does attention "
                                               "average over?",
                                           .files = {"sink-map", "strongest-sinks", "n_eff-by-attention"},
                                           .keys = {"overview"},
                                           .blocks = summary_blocks,
                                           .add_json = add_summary_json,
                                           .tables = summary_tables};

}  // namespace gainlens::reports
