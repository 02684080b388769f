#include "analyses/selection.h"

#include "core/check.h"
#include "core/quantity.h"

#include <algorithm>
#include <numeric>

namespace gainlens::analyses {
namespace {

const Length* find(const std::vector<Length>& lengths, std::int64_t tokens) {
  const auto found =
      std::find_if(lengths.begin(), lengths.end(), [&](const Length& length) { return length.tokens == tokens; });
  return found == lengths.end() ? nullptr : &*found;
}

std::vector<Length> asked_lengths(const std::vector<Length>& usable, std::vector<std::int64_t> at) {
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  std::vector<Length> chosen;
  for (const std::int64_t tokens : at) {
    const Length* length = find(usable, tokens);
    CHECK(length != nullptr, "--at: the run has no complete chunk of {} tokens; it has {}", tokens,
          list_lengths(usable));
    chosen.push_back(*length);
  }
  return chosen;
}

}  // namespace

std::vector<Length> all_lengths(const runfile::RunReader& reader) {
  std::vector<Length> lengths;
  for (std::size_t index = 0; index < reader.lengths().size(); ++index) {
    if (!reader.is_kept(index)) continue;
    Length length{index, reader.lengths()[index], {}, 0};
    for (std::int64_t sample = 0; sample < reader.samples(); ++sample) {
      if (reader.complete(index, sample)) {
        length.samples.push_back(sample);
      } else {
        ++length.missing;
      }
    }
    lengths.push_back(std::move(length));
  }
  return lengths;
}

std::vector<Length> usable_lengths(const runfile::RunReader& reader) {
  std::vector<Length> lengths = all_lengths(reader);
  std::erase_if(lengths, [](const Length& length) { return length.samples.empty(); });
  CHECK(!lengths.empty(), "{}: no chunk is complete; finish the sweep first", printable(reader.path().string()));
  return lengths;
}

std::vector<Length> sink_lengths(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> usable = usable_lengths(reader);
  if (!options.at.empty()) return asked_lengths(usable, options.at);
  const std::size_t count = std::min<std::size_t>(usable.size(), 2);
  return {usable.end() - static_cast<std::ptrdiff_t>(count), usable.end()};
}

std::string sink_lengths_rule(const runfile::RunReader& reader, const Options& options) {
  if (!options.at.empty()) return "given with --at";
  const std::vector<Length> usable = usable_lengths(reader);
  if (usable.size() == 1) return "the only length";
  return "the two longest; change with --at";
}

std::vector<std::size_t> deep_layers(const runfile::RunReader& reader, const Options& options) {
  const auto count = static_cast<std::int64_t>(reader.layers().size());
  const std::int64_t deep = options.deep_layers.value_or((count + 3) / 4);
  CHECK(deep >= 1 && deep <= count, "--deep-layers: {}; 1 to {} are allowed, the number of layers in the run", deep,
        count);
  std::vector<std::size_t> positions(static_cast<std::size_t>(deep));
  std::iota(positions.begin(), positions.end(), static_cast<std::size_t>(count - deep));
  return positions;
}

std::vector<std::size_t> all_layers(const runfile::RunReader& reader) {
  std::vector<std::size_t> positions(reader.layers().size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  return positions;
}

std::vector<std::int64_t> original_layers(const runfile::RunReader& reader, const std::vector<std::size_t>& positions) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(positions.size());
  for (const std::size_t position : positions) numbers.push_back(reader.layers().at(position));
  return numbers;
}

std::vector<std::size_t> layers_that_see_key_0(const runfile::RunReader& reader, std::int64_t tokens) {
  std::vector<std::size_t> layers = all_layers(reader);
  std::erase_if(layers, [&](std::size_t layer) {
    return first_key_visibility(reader.attention()[layer], tokens) == FirstKey::hidden;
  });
  return layers;
}

std::string list_lengths(const std::vector<Length>& lengths) {
  std::string text;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (i > 0) text += i + 1 == lengths.size() ? " and " : ", ";
    text += format_count(lengths[i].tokens);
  }
  return text;
}

OrderedJson tokens_of(const std::vector<Length>& lengths) {
  OrderedJson tokens = OrderedJson::array();
  for (const Length& length : lengths) tokens.push_back(length.tokens);
  return tokens;
}

}  // namespace gainlens::analyses
