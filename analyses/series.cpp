#include "analyses/series.h"

#include "core/check.h"
#include "core/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <regex>
#include <set>

namespace gainlens::analyses {
namespace {

PairedDifference beside_itself(const PairedDifference& one) {
  return {one.quantity, one.first, one.first, Measured::none("the first run"), Maybe<Interval>::none("the first run"),
          one.pairs};
}

/// The heads of every run, as those of the first.
void add_heads(Series& series, const std::vector<Comparison>& comparisons) {
  for (const Comparison& one : comparisons)
    if (!one.no_heads.empty() && series.no_heads.empty()) series.no_heads = one.no_heads;
  if (!series.no_heads.empty()) return;
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    std::ranges::copy_if(comparisons[i].heads, std::back_inserter(series.points[i + 1].heads),
                         [&](const HeadDifference& head) { return head.tokens == series.tokens; });
  for (const HeadDifference& head : series.points[1].heads) {
    HeadDifference& first = series.points.front().heads.emplace_back(head);
    for (PairedDifference& one : first.quantities) one = beside_itself(one);
  }
}

void add_once(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const std::string& one : more)
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

/// The runs in the order of the axis.
std::vector<SeriesPoint> places_of(std::span<const SeriesRun> runs, bool by_step) {
  CHECK(runs.size() >= 2 && runs.size() <= max_series_runs, "--axis: {} runs; a series has 2 to {}", runs.size(),
        max_series_runs);
  std::vector<SeriesPoint> points;
  for (const SeriesRun& run : runs) {
    const double place = by_step ? step_of(run.label) : static_cast<double>(points.size());
    for (const SeriesPoint& other : points) {
      CHECK(other.label != run.label, "--axis: two runs are called '{}'; give each a name of its own (--names)",
            printable(run.label));
      CHECK(other.place != place, "--axis: '{}' and '{}' are both at step {}", printable(other.label),
            printable(run.label), place);
    }
    points.push_back({run.label, place, {}});
  }
  std::ranges::stable_sort(points, {}, &SeriesPoint::place);
  return points;
}

}  // namespace

double step_of(const std::string& label) {
  const auto last = label.find_last_of("0123456789");
  CHECK(last != std::string::npos,
        "--axis: '{}' has no number; name the runs by their steps (--names 0,1000,2000), or take --axis name",
        printable(label));
  const auto before = label.find_last_not_of("0123456789", last);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  // "1e3", "1.5", "1,000", "0x10", "5k" and "-5" are numbers of which the last digits are a part.
  static const std::regex in_front(R"(([0-9]([.,_']|[eEpP][+-]?|[xX])|(^|[^0-9A-Za-z])[.,]|^[+-]|[^0-9A-Za-z][+-])$)");
  static const std::regex behind("^[kKmM]([^A-Za-z]|$)");
  CHECK(!std::regex_search(label.substr(0, first), in_front) && !std::regex_search(label.substr(last + 1), behind),
        "--axis: '{}' has no step in digits alone; name the runs by their steps (--names 0,1000,2000)",
        printable(label));
  constexpr std::int64_t most = std::int64_t{1} << 53;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(label.data() + first, label.data() + last + 1, step);
  CHECK(error == std::errc() && end == label.data() + last + 1 && step <= most,
        "--axis: the number of '{}' is too large", printable(label));
  return static_cast<double>(step);
}

Series series(std::span<const SeriesRun> runs, bool by_step, const Options& options) {
  Series found;
  found.by_step = by_step;
  found.points = places_of(runs, by_step);
  const auto run_called = [&](const std::string& label) -> const SeriesRun& {
    return *std::ranges::find(runs, label, &SeriesRun::label);
  };
  const std::string& first = found.points.front().label;
  std::vector<Comparison> comparisons;
  std::set<std::int64_t> common;
  for (std::size_t i = 1; i < found.points.size(); ++i) {
    const std::string& label = found.points[i].label;
    check_different(run_called(first).reader, run_called(label).reader);
    const Comparison& one =
        comparisons.emplace_back(compare(run_called(first).reader, run_called(label).reader, options));
    CHECK(one.refused.empty(), "--axis: '{}' and '{}' cannot be compared: {}", printable(first), printable(label),
          one.refused);
    std::set<std::int64_t> lengths;
    for (const ComparedLength& length : one.lengths)
      if (i == 1 || common.contains(length.tokens)) lengths.insert(length.tokens);
    common = std::move(lengths);
    add_once(found.caveats, one.caveats);
  }
  CHECK(!common.empty(), "--axis: the runs have no context length in common");
  found.tokens = *common.rbegin();
  for (std::size_t i = 1; i < found.points.size(); ++i)
    found.points[i].quantities =
        std::ranges::find(comparisons[i - 1].lengths, found.tokens, &ComparedLength::tokens)->quantities;
  // The first run stands beside itself: its means are those that the second one was compared with.
  for (const PairedDifference& one : found.points[1].quantities)
    found.points.front().quantities.push_back(beside_itself(one));
  add_heads(found, comparisons);
  return found;
}

OrderedJson to_json(const Series& series) {
  OrderedJson json = {{"axis", series.by_step ? "step" : "name"}, {"tokens", series.tokens}};
  json["runs"] = OrderedJson::array();
  for (const SeriesPoint& point : series.points) {
    OrderedJson row = {{"run", point.label}};
    if (series.by_step) row["step"] = static_cast<std::int64_t>(point.place);
    for (const PairedDifference& one : point.quantities) row[std::string(one.quantity.name)] = to_json(one);
    json["runs"].push_back(std::move(row));
  }
  if (!series.no_heads.empty()) json["heads_reason"] = series.no_heads;
  json["caveats"] = series.caveats;
  return json;
}

}  // namespace gainlens::analyses
