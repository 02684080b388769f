#include "analyses/published_sinks.h"

#include "analyses/selection.h"
#include "core/quantity.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {}  // namespace

void SinkCount::add(double column_mean) {
  cells += std::isfinite(column_mean) ? 1 : 0;
  sinks += column_mean > column_mean_threshold ? 1 : 0;
}

void SinkCount::add(const Cells& column_means, std::size_t length, std::int64_t sample,
                    const std::vector<std::size_t>& layers, std::size_t key) {
  for (const std::size_t layer : layers) {
    for (std::size_t head = 0; head < column_means.heads(); ++head)
      add(column_means.at(length, sample, layer, head, key));
  }
}

Maybe<SinkCount> published_sinks(const runfile::RunReader& reader, const Options& /*options*/) {
  const std::vector<Length> lengths = usable_lengths(reader);
  const auto found = std::find_if(lengths.begin(), lengths.end(),
                                  [](const Length& length) { return length.tokens == published_sink_length; });
  if (found == lengths.end())
    return Maybe<SinkCount>::none(fmt::format("the run has no chunk of {} tokens", published_sink_length));
  const auto column_mean = Cells::read(reader, "summary/column_mean");
  if (!column_mean) return Maybe<SinkCount>::none(column_mean.reason());
  SinkCount count;
  for (const std::int64_t sample : found->samples)
    count.add(*column_mean, found->index, sample, layers_that_see_key_0(reader, found->tokens), 0);
  if (count.cells == 0) return Maybe<SinkCount>::none("no chunk has a column mean");
  return count;
}

std::string published_sinks_in_words(const SinkCount& count) {
  return fmt::format(
      "at {} tokens, the length of Gu et al., {} of {} (head, chunk) pairs ({:.2f}%) have a column mean above {:g} on "
      "BOS",
      published_sink_length, count.sinks, count.cells, 100 * count.share(), column_mean_threshold);
}

}  // namespace gainlens::analyses
