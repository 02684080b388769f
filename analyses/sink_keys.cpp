#include "analyses/sink_keys.h"

#include "analyses/statistics.h"
#include "analyses/token_class.h"
#include "core/check.h"
#include "core/quantity.h"
#include "runfile/first_key.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

namespace gainlens::analyses {
namespace {

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();
/// Means of weights may exceed 1 by rounding, most in bfloat16.
constexpr double largest_mean = 1.01;

/// A chunk of the run, by positions on its axes.
struct Chunk {
  std::size_t length_index;
  std::int64_t tokens;
  std::int64_t sample;
};

std::string place(const Chunk& chunk, std::int64_t layer, std::int64_t head) {
  return fmt::format("at length {}, sample {}, layer {}, head {}", chunk.tokens, chunk.sample, layer, head);
}

[[noreturn]] void refuse(const runfile::RunReader& reader, const std::string& where, const std::string& found) {
  throw_invalid("{}: /sinks {}: {}; the file is damaged (repeating the sweep command rebuilds it from its shards)",
                printable(reader.path().string()), where, found);
}

/// /sinks of a run: every stored key, checked.
class StoredSinks {
 public:
  explicit StoredSinks(const runfile::RunReader& reader) : reader_(reader), texts_(reader.read_text("sinks/text")) {
    for (const char* name : {"position", "token", "queries", "stream_dimension", "column_mean", "second_half_mean",
                             "last_quarter_mean", "value_norm_ratio", "key_norm_ratio", "key_query_cosine",
                             "stream_ratio", "stream_ratio_after", "stream_cosine"})
      arrays_.emplace(name, reader.read(fmt::format("sinks/{}", name)).values);
  }

  /// The keys of a head, with class `common`.
  std::vector<SinkKey> of(const Chunk& chunk, std::size_t layer, std::int64_t head) const {
    const auto cannot_be = [&](const std::string& why) {
      refuse(reader_, place(chunk, reader_.layers()[layer], head), why);
    };
    std::vector<SinkKey> keys;
    bool ended = false;
    for (std::int64_t rank = 0; rank < runfile::stored_sinks; ++rank) {
      const std::size_t at = index(chunk, layer, head, rank);
      if (arrays_.at("position")[at] == -1) {
        ended = true;
        if (!std::isnan(arrays_.at("column_mean")[at]))
          cannot_be(fmt::format("rank {} has a column mean and no position", rank));
        continue;
      }
      if (ended) cannot_be(fmt::format("rank {} has a position, and one before it has none", rank));
      keys.push_back(key(chunk, layer, head, at));
      check_mean(keys.back(), chunk);
      const auto same = std::count_if(keys.begin(), keys.end(),
                                      [&](const SinkKey& other) { return other.position == keys.back().position; });
      if (same > 1)
        refuse(reader_, place(chunk, keys.back().layer, head),
               fmt::format("position {} stands twice", keys.back().position));
    }
    return keys;
  }

 private:
  std::size_t index(const Chunk& chunk, std::size_t layer, std::int64_t head, std::int64_t rank) const {
    std::size_t at = chunk.length_index;
    at = at * static_cast<std::size_t>(reader_.samples()) + static_cast<std::size_t>(chunk.sample);
    at = at * reader_.layers().size() + layer;
    at = at * static_cast<std::size_t>(reader_.heads()) + static_cast<std::size_t>(head);
    return at * static_cast<std::size_t>(runfile::stored_sinks) + static_cast<std::size_t>(rank);
  }

  SinkKey key(const Chunk& chunk, std::size_t layer, std::int64_t head, std::size_t at) const {
    const auto number = [&](const char* name) { return arrays_.at(name)[at]; };
    const auto integer = [&](const char* name, double least, double end) {
      const double value = number(name);
      if (!(value >= least && value < end))
        refuse(reader_, place(chunk, reader_.layers()[layer], head),
               fmt::format("{} {} is not from {} to {}", name, value, least, end - 1));
      return static_cast<std::int64_t>(value);
    };
    const auto tokens = static_cast<double>(chunk.tokens);
    return {chunk.tokens,
            chunk.sample,
            reader_.layers()[layer],
            head,
            integer("position", 0, tokens),
            integer("token", 0, 0x1p31),
            texts_[at],
            TokenClass::common,
            number("column_mean"),
            number("second_half_mean"),
            number("last_quarter_mean"),
            integer("queries", static_cast<double>(runfile::min_sink_queries), tokens + 1),
            number("value_norm_ratio"),
            number("key_norm_ratio"),
            number("key_query_cosine"),
            number("stream_ratio"),
            number("stream_ratio_after"),
            number("stream_cosine"),
            integer("stream_dimension", -1, 0x1p31)};
  }

  void check_mean(const SinkKey& key, const Chunk& chunk) const {
    const auto is_mean = [](double value) { return value >= 0 && value <= largest_mean; };
    if (!is_mean(key.column_mean) || !is_mean(key.second_half_mean) || !is_mean(key.last_quarter_mean)) {
      refuse(reader_, place(chunk, key.layer, key.head),
             fmt::format("position {} has the means {}, {} and {}", key.position, key.column_mean, key.second_half_mean,
                         key.last_quarter_mean));
    }
  }

  const runfile::RunReader& reader_;
  std::map<std::string, std::vector<double>> arrays_;  // by dataset, row-major
  std::vector<std::string> texts_;
};

/// Keys 0 to 7 of a run of statistics version 3 or lower, of which it has means and no more.
class FirstKeys {
 public:
  explicit FirstKeys(const runfile::RunReader& reader)
      : reader_(reader),
        column_(Cells::read(reader, "summary/column_mean")),
        half_(Cells::read(reader, "summary/first_mass")) {
    CHECK(column_ && half_, "{}: {}; sweep with statistics into another folder", printable(reader.path().string()),
          column_ ? half_.reason() : column_.reason());
  }

  std::vector<SinkKey> of(const Chunk& chunk, std::size_t layer, std::int64_t head) const {
    const auto window = runfile::attention_window(reader_.attention()[layer]);
    ASSERT(window, "layer {} has no kind of attention", layer);
    std::vector<SinkKey> keys;
    const std::optional<std::int64_t> bos = reader_.request().bos;
    for (std::int64_t m = 0; m < std::min(runfile::first_keys, chunk.tokens); ++m) {
      const std::int64_t seen_by = std::min(chunk.tokens - m, *window);
      if (seen_by < runfile::fewest_sink_queries(std::min(chunk.tokens, *window))) continue;
      const auto at = [&](const Cells& cells) {
        return cells.at(chunk.length_index, chunk.sample, layer, static_cast<std::size_t>(head),
                        static_cast<std::size_t>(m));
      };
      // The stored mean counts the queries from which the window hides the key, with weight 0.
      const double mean = at(*column_) * static_cast<double>(chunk.tokens - m) / static_cast<double>(seen_by);
      if (!std::isfinite(mean) || mean < runfile::min_stored_mean) continue;
      keys.push_back({chunk.tokens, chunk.sample, reader_.layers()[layer], head, m, m == 0 && bos ? *bos : -1, "",
                      TokenClass::common, mean, at(*half_), not_known, seen_by, not_known, not_known, not_known,
                      not_known, not_known, not_known, -1});
    }
    return keys;
  }

 private:
  const runfile::RunReader& reader_;
  Maybe<Cells> column_, half_;
};

/// What makes two keys of a layer one group: the text, or without one the token's id, or without that the position.
struct GroupName {
  std::string text;
  std::int64_t token;
  std::int64_t position;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated comparison for a pointer
  friend auto operator<=>(const GroupName&, const GroupName&) = default;
};

GroupName group_of(const SinkKey& key) {
  if (!key.text.empty()) return {key.text, -1, -1};
  if (key.token >= 0) return {"", key.token, -1};
  return {"", -1, key.position};
}

/// Mean over the finite numbers; NaN if there is none.
class FiniteMean {
 public:
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? not_known : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// A key with what is asked of it.
struct JudgedKey {
  SinkKey key;
  bool counts;   ///< towards the sink mass
  bool is_sink;  ///< from the threshold on
};

/// Sets the classes of keys, from their texts and, for words, from how often they stand here.
void classify(std::vector<JudgedKey>& keys, std::optional<std::int64_t> bos) {
  std::map<std::pair<std::int64_t, std::string>, std::set<std::pair<std::int64_t, std::int64_t>>> places;
  for (auto& [key, counts, is_sink] : keys) {
    key.token_class = bos && key.token == *bos ? TokenClass::bos : class_of_text(key.text);
    if (!key.text.empty()) places[{key.length, key.text}].insert({key.sample, key.position});
  }
  for (auto& [key, counts, is_sink] : keys) {
    if (key.token_class == TokenClass::common && !key.text.empty() && places.at({key.length, key.text}).size() == 1)
      key.token_class = TokenClass::rare;
  }
}

/// The groups of one length.
std::vector<SinkGroup> groups_of(const std::vector<JudgedKey>& judged, std::int64_t heads, const Length& length) {
  std::map<std::pair<std::int64_t, GroupName>, std::vector<const JudgedKey*>> members;
  for (const JudgedKey& one : judged) members[{one.key.layer, group_of(one.key)}].push_back(&one);
  std::vector<SinkGroup> groups;
  for (const auto& [name, keys] : members) {
    const SinkKey& first = keys.front()->key;
    SinkGroup group{};
    group.length = first.length;
    group.layer = name.first;
    group.text = first.text;
    group.token = first.token;
    group.token_class = first.token_class;
    group.has_sink = std::any_of(keys.begin(), keys.end(), [](const JudgedKey* one) { return one->is_sink; });
    // Chunk by chunk first, as the mass of a head is added up: where a head has one text, both are the same bits.
    std::map<std::pair<std::int64_t, std::int64_t>, double> by_chunk;  // by head, chunk
    std::map<std::int64_t, std::set<std::int64_t>> positions;
    FiniteMean value, stream;
    for (const JudgedKey* one : keys) {
      const SinkKey& key = one->key;
      positions[key.sample].insert(key.position);
      if (one->counts) by_chunk[{key.head, key.sample}] += key.second_half_mean;
      value.add(key.value_norm_ratio);
      stream.add(key.stream_ratio);
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      std::vector<double> masses;
      for (const std::int64_t sample : length.samples) {
        const auto found = by_chunk.find({head, sample});
        masses.push_back(found == by_chunk.end() ? 0 : found->second);
      }
      group.mass.push_back(mean(masses));
    }
    for (const auto& [sample, set] : positions) {
      group.positions.push_back({sample, {set.begin(), set.end()}});
      group.count += std::ssize(set);
    }
    group.chunks = std::ssize(group.positions);
    group.value_norm_ratio = value.value();
    group.stream_ratio = stream.value();
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const SinkGroup& a, const SinkGroup& b) {
    if (a.layer != b.layer) return a.layer < b.layer;
    return *std::max_element(a.mass.begin(), a.mass.end()) > *std::max_element(b.mass.begin(), b.mass.end());
  });
  return groups;
}

std::vector<SinkLife> lives_of(const std::vector<SinkKey>& keys) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, SinkLife> lives;
  for (const SinkKey& key : keys) {
    SinkLife& life =
        lives
            .try_emplace({key.length, key.sample, key.position},
                         SinkLife{key.length, key.sample, key.position, key.token, key.text, key.token_class, {}})
            .first->second;
    if (life.layers.empty() || life.layers.back() != key.layer) life.layers.push_back(key.layer);
  }
  std::vector<SinkLife> all;
  all.reserve(lives.size());
  for (auto& [place, life] : lives) all.push_back(std::move(life));
  return all;
}

/// Adds up the sinks of one length.
class Shares {
 public:
  Shares(const runfile::RunReader& reader, const Length& length)
      : by_layer_(reader.layers().size()), shares_{length, not_known, {}, {}, {}, {}, 0, 0} {
    for (const TokenClass token_class : token_classes) {
      shares_.by_class[token_class] = 0;
      shares_.keys[token_class] = 0;
      shares_.chunks[token_class] = 0;
    }
  }

  /// @param mass  sink mass of the head; NaN where there is none
  void add(std::size_t layer, double mass, std::span<const JudgedKey> keys) {
    if (!std::isfinite(mass)) return;
    by_layer_[layer].add(mass);
    all_.add(mass);
    ++cells_;
    for (const auto& [key, counts, is_sink] : keys) {
      if (is_sink) seen_late_[{key.layer, key.head}] += key.second_half_mean;
      if (!counts) continue;
      shares_.by_class[key.token_class] += key.second_half_mean;
      ++shares_.keys[key.token_class];
      chunks_[key.token_class].insert(key.sample);
    }
  }

  SinkShares finish() && {
    shares_.total = all_.value();
    for (const FiniteMean& layer : by_layer_) shares_.by_layer.push_back(layer.value());
    for (auto& [token_class, sum] : shares_.by_class) sum = cells_ == 0 ? not_known : sum / static_cast<double>(cells_);
    for (const auto& [token_class, samples] : chunks_) shares_.chunks[token_class] = std::ssize(samples);
    shares_.sink_heads = std::ssize(seen_late_);
    shares_.early_heads =
        std::count_if(seen_late_.begin(), seen_late_.end(), [](const auto& head) { return head.second == 0; });
    return std::move(shares_);
  }

 private:
  std::vector<FiniteMean> by_layer_;
  FiniteMean all_;
  std::int64_t cells_ = 0;
  std::map<TokenClass, std::set<std::int64_t>> chunks_;
  std::map<std::pair<std::int64_t, std::int64_t>, double> seen_late_;  // by layer, head: weight of its sinks
  SinkShares shares_;
};

/// Queries that see a key of the layer at most.
std::int64_t max_queries(const std::string& attention, std::int64_t tokens) {
  const auto window = runfile::attention_window(attention);
  ASSERT(window, "attention '{}' is of no kind", attention);
  return std::min(*window, tokens);
}

template <typename Source>
SinkKeys sinks_of(const runfile::RunReader& reader, double threshold, std::vector<Length> lengths,
                  const Source& source) {
  const std::int64_t heads = reader.heads();
  const std::size_t layers = reader.layers().size();
  std::vector<double> masses(
      reader.lengths().size() * static_cast<std::size_t>(reader.samples()) * layers * static_cast<std::size_t>(heads),
      not_known);
  std::vector<double> sink_masses = masses, full = masses;
  std::vector<SinkKey> sinks, counted;
  std::vector<SinkGroup> groups;
  std::vector<SinkShares> all_shares;
  std::int64_t full_heads = 0;
  for (const Length& length : lengths) {
    std::vector<JudgedKey> judged;
    std::vector<std::size_t> ends;  // in `judged`, of each chunk, layer and head
    for (const std::int64_t sample : length.samples) {
      for (std::size_t layer = 0; layer < layers; ++layer) {
        const double least = min_counted_mean(max_queries(reader.attention()[layer], length.tokens));
        for (std::int64_t head = 0; head < heads; ++head) {
          for (SinkKey& key : source.of({length.index, length.tokens, sample}, layer, head)) {
            const bool counts = key.column_mean >= least, is_sink = key.column_mean >= threshold;
            if (counts || is_sink) judged.push_back({std::move(key), counts, is_sink});
          }
          ends.push_back(judged.size());
        }
      }
    }
    classify(judged, reader.request().bos);
    for (SinkGroup& group : groups_of(judged, heads, length)) groups.push_back(std::move(group));

    Shares shares(reader, length);
    std::size_t begin = 0, cell = 0;
    for (const std::int64_t sample : length.samples) {
      for (std::size_t layer = 0; layer < layers; ++layer) {
        const bool can_have = max_queries(reader.attention()[layer], length.tokens) >= runfile::min_sink_queries;
        for (std::int64_t head = 0; head < heads; ++head) {
          const auto keys = std::span(judged).subspan(begin, ends[cell] - begin);
          begin = ends[cell++];
          double mass = can_have ? 0 : not_known, weight = mass;
          for (const JudgedKey& one : keys) {
            if (one.counts) mass += one.key.second_half_mean;
            if (one.is_sink) weight += one.key.second_half_mean;
          }
          shares.add(layer, mass, keys);
          const std::size_t row =
              length.index * static_cast<std::size_t>(reader.samples()) + static_cast<std::size_t>(sample);
          const std::size_t at =
              (row * layers + layer) * static_cast<std::size_t>(heads) + static_cast<std::size_t>(head);
          masses[at] = mass;
          sink_masses[at] = weight;
          const bool is_full = std::count_if(keys.begin(), keys.end(),
                                             [](const JudgedKey& one) { return one.counts; }) == runfile::stored_sinks;
          full[at] = is_full ? 1 : 0;
          full_heads += is_full;
        }
      }
    }
    all_shares.push_back(std::move(shares).finish());
    for (const JudgedKey& one : judged) {
      if (one.is_sink) sinks.push_back(one.key);
      if (one.counts) counted.push_back(one.key);
    }
  }
  std::vector<SinkLife> lives = lives_of(sinks);
  return {threshold,
          !has_sink_keys(reader),
          std::move(lengths),
          std::move(sinks),
          std::move(counted),
          std::move(groups),
          std::move(lives),
          std::move(all_shares),
          Cells::of(reader, std::move(masses)),
          Cells::of(reader, std::move(sink_masses)),
          Cells::of(reader, std::move(full)),
          full_heads};
}

OrderedJson number_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

}  // namespace

double min_counted_mean(std::int64_t most) {
  ASSERT(most > 0, "a layer whose keys {} queries see", most);
  return std::max(runfile::min_stored_mean, 1 / std::sqrt(static_cast<double>(most)));
}

SinkMass SinkKeys::mass_of(const Length& length, std::size_t layer, std::size_t head) const {
  std::size_t left_out = 0;
  return {mean_over_samples(mass, length, layer, head, 0, left_out),
          mean_over_samples(full, length, layer, head, 0, left_out) > 0};
}

bool has_sink_keys(const runfile::RunReader& reader) {
  return reader.has("sinks/position");
}

SinkKeys sink_keys(const runfile::RunReader& reader, double threshold, const std::vector<std::int64_t>& at) {
  CHECK(threshold >= runfile::min_stored_mean && threshold <= 1,
        "threshold {}: runs store keys with a column mean of at least {}; give a number from {} to 1", threshold,
        runfile::min_stored_mean, runfile::min_stored_mean);
  CHECK(reader.request().statistics, "{}: the run has no attention statistics (swept with --statistics none)",
        printable(reader.path().string()));
  Options options;
  options.at = at;
  std::vector<Length> lengths = at.empty() ? usable_lengths(reader) : sink_lengths(reader, options);
  if (has_sink_keys(reader)) return sinks_of(reader, threshold, std::move(lengths), StoredSinks(reader));
  return sinks_of(reader, threshold, std::move(lengths), FirstKeys(reader));
}

std::string label_of(const std::string& text, std::int64_t token) {
  if (!text.empty()) return fmt::format("\"{}\"", printable(text, 60));
  return token >= 0 ? fmt::format("token {}", token) : "token not known";
}

OrderedJson to_json(const SinkKeys& sinks) {
  OrderedJson rows = OrderedJson::array();
  for (const SinkKey& key : sinks.keys) {
    rows.push_back({{"length", key.length},
                    {"sample", key.sample},
                    {"layer", key.layer},
                    {"head", key.head},
                    {"position", key.position},
                    {"token", key.token >= 0 ? OrderedJson(key.token) : OrderedJson(nullptr)},
                    {"text", key.text},
                    {"column_mean", key.column_mean},
                    {"value_norm_ratio", number_or_null(key.value_norm_ratio)},
                    {"stream_ratio", number_or_null(key.stream_ratio)}});
  }
  return {{"sinks", std::move(rows)}};
}

}  // namespace gainlens::analyses
