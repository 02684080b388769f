#include "runfile/coordinates.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/number_ranges.h"
#include "runfile/first_key.h"
#include "runfile/text_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace gainlens::runfile {
namespace {

using Lengths = std::span<const std::int64_t>;

bool always(const Request&) {
  return true;
}

/// Heads of one KV group are neighbours, so the map is known where the groups are of one size.
bool has_equal_groups(const Request& request) {
  return request.heads % request.kv_heads == 0;
}

CoordinateValues attention(const Request& request, Lengths) {
  return request.attention;
}

CoordinateValues kv_head_of_head(const Request& request, Lengths) {
  std::vector<std::int64_t> values;
  for (std::int64_t head = 0; head < request.heads; ++head) values.push_back(head / (request.heads / request.kv_heads));
  return values;
}

/// Borders of the bins: b / 64, which float64 holds exactly.
template <std::int64_t offset>
CoordinateValues bin_border(const Request&, Lengths) {
  std::vector<double> values;
  for (std::int64_t bin = 0; bin < bins; ++bin)
    values.push_back(static_cast<double>(bin + offset) / static_cast<double>(bins));
  return values;
}

CoordinateValues token_offset(const Request& request, Lengths lengths) {
  const TextLayout layout = layout_of(request);
  std::vector<std::int64_t> values;
  for (const std::int64_t length : lengths) {
    for (std::int64_t sample = 0; sample < request.samples; ++sample)
      values.push_back(text_span(layout, length, sample).begin);
  }
  return values;
}

CoordinateValues key_0_visible(const Request& request, Lengths lengths) {
  std::vector<std::int8_t> values;
  for (const std::int64_t length : lengths) {
    for (const std::string& kind : request.attention)
      values.push_back(static_cast<std::int8_t>(first_key_visibility(kind, length)));
  }
  return values;
}

bool contains(std::span<const Axis> axes, Axis axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

constexpr std::size_t max_name_bytes = 100;
constexpr std::size_t max_policy_bytes = 500;

/// "0 to 27", "8, 24", "0 to 3, 7". Long lists are shortened: "40 numbers from 1 to 99".
std::string listed(const std::vector<std::int64_t>& numbers) {
  constexpr std::int64_t max_parts = 12;
  const std::string ranges = number_ranges(numbers, " to ");
  if (std::count(ranges.begin(), ranges.end(), ',') < max_parts) return ranges;
  return fmt::format("{} numbers from {} to {}", numbers.size(), numbers.front(), numbers.back());
}

/// Where the chunks lie in the text: "consecutive", "nested, spread over 500 tokens".
std::string placement(const Request& request) {
  const std::string place =
      request.spread ? fmt::format("spread over {} tokens", *request.spread) : std::string("consecutive");
  return request.nested ? "nested, " + place : place;
}

/// One sentence on how the numbers were made.
std::string source_of(const Request& request) {
  return fmt::format(
      "gainlens sweep of a model of family {} ({}: {}; {}, {} of {}) in {} on {}, statistics version {}: {} ({}) of "
      "each context length {} from {} with sha256 {}; BOS policy: {}.",
      printable(request.family, max_name_bytes), counted(std::ssize(request.layers), "layer"), listed(request.layers),
      counted(request.heads, "head"), kv_heads_in_words(request), counted(request.head_dim, "dimension"), request.dtype,
      request.device, request.version, counted(request.samples, "chunk"), placement(request), listed(request.lengths),
      request.tokenizer == "tokens" ? "token ids" : "the text", printable(request.text, max_name_bytes),
      printable(request.bos_policy, max_policy_bytes));
}

/// The value of the attribute `coordinates`: the coordinates besides the dimension scales. Empty if there are none.
std::string coordinate_names(std::span<const Axis> axes, Group group, const Request& request) {
  std::vector<std::string_view> names;
  for (const Coordinate* coordinate : coordinates_on(axes, group, request)) names.push_back(coordinate->name);
  return fmt::format("{}", fmt::join(names, " "));
}

void add_coordinates(Attributes& attributes, std::span<const Axis> axes, Group group, const Request& request) {
  const std::string names = coordinate_names(axes, group, request);
  if (!names.empty()) attributes.emplace_back("coordinates", names);
}

/// Says, for a model with learned sink logits, whether the weights of a number are those among the keys, or of keys and
/// sink.
std::string_view share_of_sink(const DatasetInfo& info) {
  const auto begins = [&](std::string_view start) { return info.name.starts_with(start); };
  if (info.group == Group::values || info.group == Group::stream || begins("gate") || begins("nll") ||
      begins("sink_logit_mass"))
    return "";
  const bool mean_of_sink = begins("column_mean") || begins("second_half_mean") || begins("last_quarter_mean");
  if (info.group == Group::sinks && !mean_of_sink) return "";
  if (begins("bos_mass") || begins("first_mass") || mean_of_sink)
    return "; of weights that sum to 1 over the keys and the learned sink logit together";
  return "; of weights renormalised to sum to 1 over the keys, without the learned sink logit";
}

}  // namespace

AxisWords words_of(Axis axis) {
  constexpr std::array<AxisWords, 10> words = {{
      {"tokens", "context length T of a chunk, with its BOS token if it has one"},
      {"1", "number of the chunk among the chunks of its length, from 0"},
      {"1", "number of the layer in the model, from 0"},
      {"1", "query head of the layer, from 0"},
      {"1", "key/value head of the layer, from 0"},
      {"1", "one of 64 equal parts of a chunk: position t of T lies in bin floor(64 t / T)"},
      {"tokens", "position of the key in the chunk, from 0; a BOS token has position 0"},
      {"1", "place of the key among the head's sinks, the largest column mean first, from 0"},
      {"1", "place among the positions with the largest absolute entries of the hidden state, from 0"},
      {"tokens", "position of the query in the chunk, from 0; a BOS token has position 0"},
  }};
  return words.at(static_cast<std::size_t>(axis));
}

std::vector<Axis> Coordinate::axes_in(Group group) const {
  std::vector<Axis> result;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(result),
               [&](Axis axis) { return group != Group::queries || axis != Axis::length; });
  return result;
}

bool Coordinate::fits(std::span<const Axis> axes_of_dataset, Group group) const {
  const std::vector<Axis> own = axes_in(group);
  return std::all_of(own.begin(), own.end(), [&](Axis axis) { return contains(axes_of_dataset, axis); });
}

std::span<const Coordinate> coordinates() {
  using Axes = std::vector<Axis>;
  static const std::vector<Coordinate> table = [] {
    std::vector<Coordinate> all;
    const auto add = [&all](std::string_view name, Axes axes, std::string_view unit, std::string_view meaning,
                            CoordinateValues (*values)(const Request&, Lengths)) {
      all.push_back({name, std::move(axes), unit, meaning, "all", always, values});
    };
    add("attention", {Axis::layer}, "",
        "keys that a query of the layer sees: 'global': its own and all earlier ones; 'window:N': the last N of these",
        attention);
    add("kv_head_of_head", {Axis::head}, "1", "key/value head that the query head reads", kv_head_of_head);
    all.back().presence = "all whose `heads` is a multiple of `kv_heads`";
    all.back().present = has_equal_groups;
    add("bin_begin", {Axis::bin}, "1",
        "start of the bin as a fraction of T: position t lies in the bin if bin_begin <= t / T < bin_end",
        bin_border<0>);
    add("bin_end", {Axis::bin}, "1",
        "end of the bin as a fraction of T: position t lies in the bin if bin_begin <= t / T < bin_end", bin_border<1>);
    add("token_offset", {Axis::length, Axis::sample}, "tokens",
        "first token of the text in the chunk, counted from 0 in the tokenised text; a BOS token put before the chunk "
        "does not count",
        token_offset);
    add("key_0_visible", {Axis::length, Axis::layer}, "1",
        "second-half queries that see key 0: 0 none, because the layer's window hides it; 1 some; 2 all",
        key_0_visible);
    return all;
  }();
  return table;
}

std::vector<Axis> axes_of_group(Group group, const Request& request) {
  std::vector<Axis> used;
  for (const DatasetInfo& info : schema()) {
    if (info.group != group || !info.present(request)) continue;
    for (const Axis axis : info.run_axes()) {
      if (!contains(used, axis)) used.push_back(axis);
    }
  }
  return used;
}

std::vector<const Coordinate*> coordinates_on(std::span<const Axis> axes, Group group, const Request& request) {
  std::vector<const Coordinate*> found;
  for (const Coordinate& coordinate : coordinates()) {
    if (coordinate.present(request) && coordinate.fits(axes, group)) found.push_back(&coordinate);
  }
  return found;
}

Attributes attributes_of_run(const Request& request, std::string_view program_version) {
  Attributes attributes = {
      {"Conventions", fmt::format("{}-{}, attribute names of CF-1.11", run_format, run_format_version)},
      {"title", fmt::format("{} of a {} model at context lengths {}",
                            request.statistics ? "Attention statistics of every head" : "Negative log likelihood",
                            printable(request.family, max_name_bytes), listed(request.lengths))},
      {"family", printable(request.family, max_name_bytes)},
      {"source", source_of(request)},
      {"references",
       "Precision Tracked Transformer via Kalman Filtering, Kriging and Process Noise (Long, Agarwal, "
       "Markovic-Voronov, Wang, Li)"}};
  if (request.estimator.name != Estimator::reml) attributes.emplace_back("estimator", words_of(request.estimator));
  if (!program_version.empty()) attributes.emplace_back("gainlens_version", printable(program_version, max_name_bytes));
  return attributes;
}

Attributes attributes_of(Axis axis) {
  const AxisWords words = words_of(axis);
  return {{"units", std::string(words.unit)}, {"long_name", std::string(words.meaning)}};
}

Attributes attributes_of(const Coordinate& coordinate) {
  Attributes attributes;
  if (!coordinate.unit.empty()) attributes.emplace_back("units", coordinate.unit);
  attributes.emplace_back("long_name", coordinate.meaning);
  return attributes;
}

Attributes attributes_of(const DatasetInfo& info, const Request& request) {
  std::string meaning = info.meaning;
  if (request.estimator.name != Estimator::reml) {  // the words of the schema are those of the default
    constexpr std::string_view reml = "REML observation precision";
    if (const std::size_t at = meaning.find(reml); at != std::string::npos)
      meaning.replace(at, reml.size(), fmt::format("observation precision ({})", words_of(request.estimator)));
  }
  if (request.sink_logits) meaning += share_of_sink(info);
  Attributes attributes;
  if (info.kind != Kind::text) attributes.emplace_back("units", info.unit);
  attributes.emplace_back("long_name", meaning);
  add_coordinates(attributes, info.run_axes(), info.group, request);
  if (const std::string_view comment = comment_on(info); !comment.empty()) attributes.emplace_back("comment", comment);
  return attributes;
}

Attributes attributes_of_complete(const Request& request) {
  Attributes attributes = {{"units", "1"}, {"long_name", "1 where the chunk has been measured"}};
  constexpr Axis axes[] = {Axis::length, Axis::sample};
  add_coordinates(attributes, axes, Group::summary, request);
  return attributes;
}

Attributes attributes_of_request() {
  return {{"long_name", "all that determines the numbers of this file, as JSON"}};
}

std::string_view comment_on(const DatasetInfo& info) {
  const bool bos_mass = info.name == "bos_mass" || info.name == "bos_mass_var";
  if (info.group == Group::summary && bos_mass)
    return "0 by construction where key_0_visible is 0: the layer's window hides key 0 from every query of the mean";
  if (info.group == Group::profile && bos_mass)
    return "0 by construction in the bins from whose queries the layer's window hides key 0";
  if (bos_mass) return "0 by construction for the queries from which the layer's window hides key 0";
  if (info.group == Group::sinks && (info.name == "second_half_mean" || info.name == "last_quarter_mean"))
    return "a query that does not see the key counts as 0";
  if (info.kind == Kind::integer) return "-1 where there is no such key or position";
  if (info.kind == Kind::text) return "empty where there is no such key, or no tokenizer";
  if (info.group == Group::sinks || info.group == Group::stream) return {};
  if (info.name == "first_mass" || info.name == "column_mean")
    return "a query from which the layer's window hides the key counts as 0 by construction";
  if (info.name.starts_with("sink_bound") || info.name == "sink_alignment")
    return "about the weight of key 0, which is 0 by construction where key_0_visible is 0";
  if (info.name.starts_with("without_first"))
    return "over all visible keys for the queries from which the layer's window hides key 0";
  return {};
}

}  // namespace gainlens::runfile
