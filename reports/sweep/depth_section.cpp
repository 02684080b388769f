#include "reports/sweep/sections.h"

#include "analyses/depth.h"
#include "core/quantity.h"
#include "core/sha256.h"
#include "reports/page/table.h"
#include "reports/sweep/depth_figure.h"
#include "reports/sweep/run_words.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::DepthAtLength;
using runfile::depth_start;

/// What depth.json beside the run says, and why not.
Maybe<std::vector<DepthAtLength>> depth_of(const SweepRun& run) {
  using Found = Maybe<std::vector<DepthAtLength>>;
  const std::filesystem::path folder = run.reader().path().parent_path();
  const auto stored = runfile::read_depth_run(folder);
  if (!stored) return Found::none("the sweep was made without --depth-precision");
  std::error_code error;
  if (!std::filesystem::exists(folder / "request.json", error) ||
      sha256_file(folder / "request.json") != stored->request)
    return Found::none("depth.json is not of this sweep; repeat the sweep with --depth-precision");
  return analyses::depth_by_length(*stored);
}

std::string numbers(const SweepRun& run) {
  const auto& depth = run.of(depth_of);
  if (!depth) return fmt::format("left out: {}.", depth.reason());
  const DepthAtLength& longest = depth->back();
  const auto& last = longest.layers.back();
  return fmt::format("in the last layer K is {:.3g} (filter) and {:.3g} (gain-one), with λ = 1 / P from the embedding.",
                     last.gain[0][depth_start], last.gain[1][depth_start]);
}

std::vector<Block> depth_blocks(Runs runs) {
  const bool asked = std::ranges::any_of(
      runs, [](const SweepRun& run) { return runfile::read_depth_run(run.reader().path().parent_path()).has_value(); });
  if (!asked) return {};
  const auto drawn = std::ranges::find_if(runs, [](const SweepRun& run) { return bool(run.of(depth_of)); });
  const std::string title = "Precision of the stream by depth";
  if (drawn == runs.end())
    return {CaptionedFigure{"depth", title, {}, Maybe<Figure>::none(runs.front().of(depth_of).reason())}};
  const DepthAtLength& longest = drawn->of(depth_of)->back();
  const Caption caption{
      fmt::format("Medians over coordinates and queries of the last quarter at {} tokens{}. Filter: attention's "
                  "estimate and the stream measure one quantity. Gain-one: their errors add. The error of the rule is "
                  "that of the variance after the MLP against drawn errors, median and 5% to 95% of coordinates. {}",
                  format_count(longest.tokens), runs.size() > 1 ? fmt::format(" of {}", drawn->label()) : "",
                  sentences_of(runs, numbers)),
      "How far the gain of a layer depends on what the stream is taken to be, and where the diagonal is a good rule.",
      "The first precision is chosen, and the sum of attention and stream is no filter: neither curve is the precision "
      "of the model."};
  return {CaptionedFigure{"depth", title, caption, depth_figure(longest)},
          paper_table(analyses::layers_of({&longest, 1})), paragraph(analyses::last_layer_words(longest))};
}

void add_depth_json(const SweepRun& run, OrderedJson& summary) {
  const auto& depth = run.of(depth_of);
  if (depth) summary["depth"] = analyses::to_json(*depth);
}

std::vector<CsvTable> depth_tables(const SweepRun& run) {
  const auto& depth = run.of(depth_of);
  if (!depth) return {};
  return {csv_table(analyses::layers_of(*depth))};
}

}  // namespace

const Section<SweepRun> depth_section = {
    .name = "depth",
    .title = "Precision through the depth",
    .question = "Which precision has the stream, if it is carried from layer to layer?",
    .files = {"depth", "depth-layers"},
    .keys = {"depth"},
    .blocks = depth_blocks,
    .add_json = add_depth_json,
    .tables = depth_tables};

}  // namespace gainlens::reports
