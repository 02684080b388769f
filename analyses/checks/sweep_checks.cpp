#include "analyses/checks/sweep_checks.h"

#include "analyses/bins.h"
#include "analyses/cells.h"
#include "analyses/context.h"
#include "analyses/neighbours.h"
#include "analyses/selection.h"
#include "analyses/statistics.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "core/quantity.h"
#include "core/sha256.h"
#include "runfile/bos_words.h"
#include "runfile/depth_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace {

/// The outcome of every check that looks at numbers, if there are none.
CheckOutcome without_statistics() {
  return not_known("the run holds no attention statistics (--statistics none, or no chunk is complete)");
}

std::vector<Length> measured_lengths(const CheckedSweep& run) {
  std::vector<Length> lengths = all_lengths(run.reader);
  std::erase_if(lengths, [](const Length& length) { return length.samples.empty(); });
  return lengths;
}

bool has_statistics(const CheckedSweep& run) {
  return run.reader.request().statistics && !measured_lengths(run).empty();
}

// Files

CheckOutcome files(const CheckedSweep& run) {
  if (!run.changed.empty()) return {run.changed, "take no number from this run until its files are mended"};
  if (!run.proof.unproven.empty() && run.proof.shards == 0)
    return not_known("whether the files have changed", run.proof.unproven);
  if (!std::filesystem::exists(run.reader.path()))
    return satisfactory(
        fmt::format("its {} as written, and run.h5 is not there yet", counted_are(run.proof.shards, "shard")));
  return satisfactory(fmt::format("run.h5 and its {} are as they were written", counted(run.proof.shards, "shard")));
}

CheckOutcome version(const CheckedSweep& run) {
  const std::int64_t version = run.reader.request().version;
  if (version == runfile::statistics_version)
    return satisfactory(fmt::format("statistics version {}, the one of this gainlens", version));
  std::vector<std::string> lacks;
  if (version < 2) lacks.emplace_back("the sink lemma");
  if (version < 3) lacks.emplace_back("sums whose error does not grow with the length");
  if (version < 4) lacks.emplace_back("sinks beyond key 7, and K without all sinks");
  return {fmt::format("statistics version {}, and this gainlens computes {}: the run lacks {}", version,
                      runfile::statistics_version, fmt::join(lacks, ", ")),
          "sweep again into another folder, if you need it"};
}

/// What `sweep --depth-precision` has written beside the run.
CheckOutcome depth(const CheckedSweep& run) {
  const std::filesystem::path folder = run.reader.path().parent_path();
  const std::string advice = fmt::format("delete {} and repeat the sweep with --depth-precision", runfile::depth_file);
  try {
    const auto stored = runfile::read_depth_run(folder);
    if (!stored) return satisfactory(fmt::format("there is no {}", runfile::depth_file));
    std::error_code error;
    if (!std::filesystem::exists(folder / "request.json", error))
      return not_known(fmt::format("whether {} belongs to this run, which has no request.json", runfile::depth_file));
    if (stored->request != sha256_file(folder / "request.json"))
      return {
          fmt::format("{} is that of another request, as before lengths or samples were added", runfile::depth_file),
          "repeat the sweep with --depth-precision"};
    const std::size_t chunks = run.reader.lengths().size() * static_cast<std::size_t>(run.reader.samples());
    if (stored->chunks.size() != chunks)
      return {fmt::format("{} has {}, and the run {}", runfile::depth_file, counted(stored->chunks.size(), "chunk"),
                          chunks),
              advice};
    return satisfactory(fmt::format("{} has all of {}{}", runfile::depth_file, counted(chunks, "chunk"),
                                    run.proof.depth_compared ? "" : ", and no checksum beside it"));
  } catch (const InvalidArgument& error) {
    return {error.what(), "take no number from it"};
  }
}

// Chunks

CheckOutcome complete(const CheckedSweep& run) {
  std::int64_t missing = 0;
  std::vector<std::string> where;
  for (const Length& length : all_lengths(run.reader)) {
    missing += length.missing;
    if (length.missing > 0) where.push_back(format_count(length.tokens));
  }
  const std::int64_t all = std::ssize(run.reader.lengths()) * run.reader.samples();
  if (missing == 0) return satisfactory(all_are(all, "chunk") + " complete");
  return {fmt::format("{} of {} missing ({} tokens)", missing, counted_are(all, "chunk"), fmt::join(where, ", ")),
          "repeat the sweep command with all lengths and samples, which measures the missing ones"};
}

CheckOutcome enough_chunks(const CheckedSweep& run) {
  const auto lengths = measured_lengths(run);
  std::vector<std::string> few;
  bool no_interval = false;
  for (const Length& length : lengths) {
    const std::int64_t chunks = std::ssize(length.samples);
    if (chunks >= min_chunks) continue;
    few.push_back(fmt::format("{} at {}", chunks, format_count(length.tokens)));
    no_interval = no_interval || chunks < 2;
  }
  if (lengths.empty()) return {"no chunk is complete", "repeat the sweep command"};
  if (few.empty()) {
    const auto least = std::ranges::min(lengths, {}, [](const Length& length) { return length.samples.size(); });
    return satisfactory(fmt::format("at least {} at every length", counted(least.samples.size(), "chunk")));
  }
  return {fmt::format("too few chunks: {} ({})", fmt::join(few, ", "),
                      no_interval ? "an interval takes 2, tests of a change take 3"
                                  : "an interval of so few is wide, and tests of neighbours take 3"),
          "sweep with --samples 5 or more, on a longer text if needed"};
}

CheckOutcome neighbours_differ(const CheckedSweep& run) {
  if (!has_statistics(run)) return without_statistics();
  const Neighbours found = neighbours(run.reader, run.options);
  const NeighbourCorrelation* worst = nullptr;
  std::size_t measured = 0;
  for (const NeighbourCorrelation& row : found.rows) {
    if (!row.correlation || row.chunks < min_neighbours) continue;
    ++measured;
    const auto chunks = static_cast<double>(row.chunks);
    const double by_chance = -1 / chunks + 2 / std::sqrt(chunks);
    if (*row.correlation < std::max(alike_neighbours, by_chance)) continue;
    if (worst == nullptr || *row.correlation > *worst->correlation) worst = &row;
  }
  if (worst == nullptr) {
    if (measured > 0) return satisfactory("neighbouring chunks are no more alike than chance allows");
    return not_known(
        fmt::format("whether neighbouring chunks are alike; it takes {} chunks of a length to tell", min_neighbours));
  }
  return {
      fmt::format("neighbouring chunks are alike: {} at {} tokens correlates by {:.2f}, so intervals over chunks are "
                  "too short",
                  worst->quantity, format_count(worst->tokens), *worst->correlation),
      "sweep with --spread, which lays the chunks apart"};
}

// Lengths

/// The lengths that are set apart because a window is not full, in words.
std::string not_full(const Context& context) {
  std::vector<std::string> lengths;
  for (const ContextPoint& point : context.points) {
    if (!point.set_apart.empty() && !point.extrapolated)
      lengths.push_back(fmt::format("{} tokens: {}", format_count(point.length.tokens), point.set_apart));
  }
  return fmt::format("{}", fmt::join(lengths, "; "));
}

CheckOutcome windows(const CheckedSweep& run) {
  if (!has_statistics(run)) return without_statistics();
  const auto& attention = run.reader.attention();
  if (std::ranges::all_of(attention, [](const std::string& kind) { return kind == "global"; }))
    return satisfactory("no layer has a window");
  std::vector<std::string> found;
  const std::vector<KindContext> kinds = context_by_attention(run.reader, run.options);
  for (const KindContext& kind : kinds) {
    if (const std::string text = not_full(kind.context); !text.empty())
      found.push_back(fmt::format("{} layers, {}", kind.attention, text));
  }
  if (kinds.empty()) {
    if (const std::string text = not_full(context(run.reader, run.options)); !text.empty()) found.push_back(text);
  }
  if (found.empty()) return satisfactory("the windows are full at every length");
  return {fmt::format("{}; a window that fills up looks like growth", fmt::join(found, "; ")),
          "judge growth at the longer lengths alone, or sweep with longer --lengths"};
}

CheckOutcome trained_length(const CheckedSweep& run) {
  const std::int64_t positions = run.reader.request().max_positions;
  std::vector<std::string> beyond;
  for (const std::int64_t length : run.reader.lengths()) {
    if (positions > 0 && length > positions) beyond.push_back(format_count(length));
  }
  if (positions == 0)
    return not_known("whether a length is above the model's positions; the run does not store their number");
  if (beyond.empty())
    return satisfactory(fmt::format("no length is above the model's {} positions", format_count(positions)));
  return {fmt::format("{} tokens are more than the model's {} positions: these numbers describe a model outside of its "
                      "range",
                      fmt::join(beyond, ", "), format_count(positions)),
          "leave these lengths out of conclusions, or sweep with shorter --lengths"};
}

CheckOutcome bos(const CheckedSweep& run) {
  const runfile::Request& request = run.reader.request();
  if (!request.bos && request.bos_policy.ends_with(runfile::bos_left_out))
    return {"the chunks begin without the BOS that the tokenizer puts first, and with which the model was trained",
            "sweep without --bos never into another folder"};
  return satisfactory(request.bos_policy);
}

// Numbers

/// Numbers of complete chunks that are missing (NaN), or infinite.
struct Missing {
  std::int64_t count = 0, of = 0;
  std::string first;  ///< where the first one is

  /// A bin that holds no query is no missing number.
  void look(const CheckedSweep& run, const std::string& name, std::int64_t first_query) {
    const auto cells = Cells::read(run.reader, name);
    if (!cells) return;
    for (const Length& length : measured_lengths(run)) {
      for (const std::int64_t sample : length.samples) look(run, name, *cells, length, sample, first_query);
    }
  }

 private:
  void look(const CheckedSweep& run, const std::string& name, const Cells& cells, const Length& length,
            std::int64_t sample, std::int64_t first_query) {
    const auto bins = static_cast<std::int64_t>(cells.last());
    for (std::size_t layer = 0; layer < run.reader.layers().size(); ++layer) {
      for (std::size_t head = 0; head < cells.heads(); ++head) {
        for (std::int64_t bin = 0; bin < bins; ++bin) {
          const std::int64_t begin = bin_start(bin, bins, length.tokens), end = bin_start(bin + 1, bins, length.tokens);
          if (std::max(begin, first_query) >= end) continue;
          ++of;
          if (std::isfinite(cells.at(length.index, sample, layer, head, static_cast<std::size_t>(bin)))) continue;
          if (count++ == 0)
            first = fmt::format("{} of layer {}, head {} at {} tokens", name.substr(name.find('/') + 1),
                                run.reader.layers()[layer], head, format_count(length.tokens));
        }
      }
    }
  }
};

CheckOutcome queries(const CheckedSweep& run) {
  if (!has_statistics(run)) return without_statistics();
  Missing missing;
  for (const char* name : {"summary/n_eff", "summary/entropy", "summary/bos_mass", "profile/n_eff"})
    missing.look(run, name, 0);
  if (missing.count == 0) return satisfactory("every head has numbers at every length");
  return {fmt::format("{} of {} means of weights are missing or infinite, first {}: queries there see no key",
                      missing.count, missing.of, missing.first),
          "look at the model's mask and windows; these heads are left out of every mean"};
}

CheckOutcome defined_evidence(const CheckedSweep& run) {
  if (!has_statistics(run)) return without_statistics();
  Missing missing;
  constexpr std::int64_t second = 1;  // query 0 sees one key, and the variance of one value is not defined
  for (const char* name : {"summary/log_observation_precision", "summary/kalman_gain", "summary/kalman_gain_scaled",
                           "profile/log_observation_precision"})
    missing.look(run, name, second);
  if (missing.count == 0) return satisfactory("lambda_obs and K are defined in every head");
  return {
      fmt::format("{} of {} means of lambda_obs and K are missing or infinite, first {}: the values that its queries "
                  "see do not vary",
                  missing.count, missing.of, missing.first),
      "draw no conclusion from the evidence of these heads; compute in --dtype float64 to see whether it is rounding"};
}

int bits_of(const std::string& dtype) {
  return dtype == "bfloat16" ? 8 : dtype == "float16" ? 11 : dtype == "float32" ? 24 : 53;
}

CheckOutcome offsets(const CheckedSweep& run) {
  if (!has_statistics(run)) return without_statistics();
  const auto norms = Cells::read(run.reader, "values/norm"), variances = Cells::read(run.reader, "values/variance");
  if (!norms || !variances)
    return not_known("whether an offset of the values is rounded away; the run does not hold their variance");
  const runfile::Request& request = run.reader.request();
  double worst = 0;
  std::string where;
  for (const Length& length : measured_lengths(run)) {
    for (const std::int64_t sample : length.samples) {
      for (std::size_t layer = 0; layer < run.reader.layers().size(); ++layer) {
        for (std::size_t head = 0; head < norms->heads(); ++head) {
          double sum = 0;
          std::int64_t bins = 0;
          for (std::size_t bin = 0; bin < norms->last(); ++bin) {
            const double norm = norms->at(length.index, sample, layer, head, bin);
            if (std::isfinite(norm)) sum += norm, ++bins;
          }
          if (bins == 0) continue;
          const double share =
              offset_rounding(sum / static_cast<double>(bins), variances->at(length.index, sample, layer, head),
                              request.head_dim, bits_of(request.dtype));
          if (share <= worst) continue;
          worst = share;
          where =
              fmt::format("layer {}, KV head {} at {} tokens", run.reader.layers()[layer],
                          static_cast<std::int64_t>(head) / run.reader.kv_repeats(layer), format_count(length.tokens));
        }
      }
    }
  }
  if (worst <= max_rounding) return satisfactory(fmt::format("no offset that {} cannot hold", request.dtype));
  return {
      fmt::format("values have an offset so large that rounding to {} is {:.2g} of their variance ({}); S and K there "
                  "contain this error",
                  request.dtype, worst, where),
      "sweep in a wider --dtype"};
}

/// Means over the complete chunks of the longest length, by head; NaN where there is none.
std::vector<double> by_head(const CheckedSweep& run, std::string_view name) {
  std::vector<double> means;
  const auto cells = Cells::read(run.reader, name);
  if (!cells) return means;
  const Length longest = measured_lengths(run).back();
  std::size_t left_out = 0;
  for (std::size_t layer = 0; layer < run.reader.layers().size(); ++layer) {
    for (std::size_t head = 0; head < cells->heads(); ++head)
      means.push_back(mean_over_samples(*cells, longest, layer, head, 0, left_out));
  }
  return means;
}

CheckOutcome scale(const CheckedSweep& run) {
  if (!has_statistics(run)) return without_statistics();
  const std::vector<double> gains = by_head(run, "summary/kalman_gain"),
                            scaled = by_head(run, "summary/kalman_gain_scaled");
  std::vector<double> x, y;
  for (std::size_t i = 0; i < std::min(gains.size(), scaled.size()); ++i) {
    if (!std::isfinite(gains[i]) || !std::isfinite(scaled[i])) continue;
    x.push_back(gains[i]);
    y.push_back(scaled[i]);
  }
  const Measured agreement = correlation(x, y, {"K", "scaled K"}).spearman;
  if (!agreement) return not_known(fmt::format("whether K and scaled K order the heads alike; {}", agreement.reason()));
  if (*agreement >= min_agreement)
    return satisfactory(fmt::format("K and scaled K order the heads alike (rank correlation {:.2f})", *agreement));
  return {fmt::format("K and scaled K order the heads differently (rank correlation {:.2f}): K shows the scale of the "
                      "values, which a model may choose freely",
                      *agreement),
          "judge heads by scaled K"};
}

CheckOutcome kv_heads(const CheckedSweep& run) {
  const std::int64_t count = run.reader.kv_heads();
  if (count > 1) return satisfactory(fmt::format("{} a layer", runfile::kv_heads_in_words(run.reader.request())));
  return {"one KV head a layer: no permutation test can decide whether sink heads have the larger K",
          "use a model with more KV heads for this question"};
}

}  // namespace

double offset_rounding(double norm, double variance, std::int64_t head_dim, int bits) {
  constexpr int exact = 53;
  const double spread = static_cast<double>(head_dim) * variance;
  const double offset = norm * norm - spread;
  if (!std::isfinite(offset) || offset <= 0 || bits >= exact) return 0;
  if (spread <= 0) return std::numeric_limits<double>::infinity();
  return offset / spread * std::ldexp(1, -2 * bits) / 3;
}

std::span<const Check<CheckedSweep>> sweep_checks() {
  static constexpr Check<CheckedSweep> checks[] = {
      {"files", "Are the files those that the sweep wrote?", files},
      {"version", "Has the run all numbers that this gainlens computes?", version},
      {"depth", "Is depth.json, where there is one, that of the run?", depth},
      {"complete", "Is every chunk measured?", complete},
      {"chunks", "Are there enough chunks for intervals?", enough_chunks},
      {"neighbours", "Are neighbouring chunks independent?", neighbours_differ},
      {"windows", "Are windows full at every length?", windows},
      {"positions", "Is every length within the model's positions?", trained_length},
      {"bos", "Does the text begin as the model has learnt it?", bos},
      {"queries", "Does every head have weights to average?", queries},
      {"evidence", "Are lambda_obs and K defined?", defined_evidence},
      {"offsets", "Can the dtype hold the values beside their offset?", offsets},
      {"scale", "Does K say more than the scale of values?", scale},
      {"kv_heads", "Can a permutation test decide about sinks?", kv_heads},
  };
  return checks;
}

}  // namespace gainlens::analyses
