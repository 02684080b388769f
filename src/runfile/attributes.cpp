#include "runfile/attributes.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/number_ranges.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gainlens::runfile {
namespace {

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
