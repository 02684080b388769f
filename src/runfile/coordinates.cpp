#include "runfile/coordinates.h"

#include "core/check.h"
#include "runfile/first_key.h"
#include "runfile/text_layout.h"

#include <algorithm>
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

}  // namespace

AxisWords words_of(Axis axis) {
  switch (axis) {
    case Axis::length:
      return {"tokens", "context length T of a chunk, with its BOS token if it has one"};
    case Axis::sample:
      return {"1", "number of the chunk among the chunks of its length, from 0"};
    case Axis::layer:
      return {"1", "number of the layer in the model, from 0"};
    case Axis::head:
      return {"1", "query head of the layer, from 0"};
    case Axis::kv_head:
      return {"1", "key/value head of the layer, from 0"};
    case Axis::bin:
      return {"1", "one of 64 equal parts of a chunk: position t of T lies in bin floor(64 t / T)"};
    case Axis::key:
      return {"tokens", "position of the key in the chunk, from 0; a BOS token has position 0"};
    case Axis::rank:
      return {"1", "place of the key among the head's sinks, the largest column mean first, from 0"};
    case Axis::largest:
      return {"1", "place among the positions with the largest absolute entries of the hidden state, from 0"};
    case Axis::query:
      return {"tokens", "position of the query in the chunk, from 0; a BOS token has position 0"};
  }
  ASSERT(false, "axis {} is not one of ours", static_cast<int>(axis));
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
  static const std::vector<Coordinate> table = {
      {"attention",
       {Axis::layer},
       "",
       "keys that a query of the layer sees: 'global': its own and all earlier ones; 'window:N': the last N of these",
       "all",
       always,
       attention},
      {"kv_head_of_head",
       {Axis::head},
       "1",
       "key/value head that the query head reads",
       "all whose `heads` is a multiple of `kv_heads`",
       has_equal_groups,
       kv_head_of_head},
      {"bin_begin",
       {Axis::bin},
       "1",
       "start of the bin as a fraction of T: position t lies in the bin if bin_begin <= t / T < bin_end",
       "all",
       always,
       bin_border<0>},
      {"bin_end",
       {Axis::bin},
       "1",
       "end of the bin as a fraction of T: position t lies in the bin if bin_begin <= t / T < bin_end",
       "all",
       always,
       bin_border<1>},
      {"token_offset",
       {Axis::length, Axis::sample},
       "tokens",
       "first token of the text in the chunk, counted from 0 in the tokenised text; a BOS token put before the chunk "
       "does not count",
       "all",
       always,
       token_offset},
      {"key_0_visible",
       {Axis::length, Axis::layer},
       "1",
       "second-half queries that see key 0: 0 none, because the layer's window hides it; 1 some; 2 all",
       "all",
       always,
       key_0_visible},
  };
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

}  // namespace gainlens::runfile
