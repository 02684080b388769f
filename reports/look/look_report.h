#pragma once

#include "core/prompt_look.h"
#include "reports/made_report.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::reports {

/// The strongest keys of each query of a prompt, for heads of some layers.
struct TokenStrip {
  std::vector<std::string> tokens;  ///< of the prompt, as text; untrusted: the page shows every character of it as text
  std::vector<std::int64_t> layers;  ///< the model's own numbers
  std::size_t heads = 0;             ///< of each of these layers
  std::size_t top = 0;               ///< keys that are kept of a query
  /// [layer of `layers`, head, query, top] Positions of keys, and the weights on them; -1 where a query has fewer.
  std::vector<double> keys;
  std::vector<double> weights;
  std::size_t layer = 0;             ///< place in `layers` of the head that the page shows first
  std::size_t head = 0;              ///< this head
  std::optional<std::size_t> query;  ///< the query that it shows first; empty: the last one
};

/// A part of a page, filled by its script, that shows the tokens in a row. The query that is pointed at, or reached by
/// the arrow keys, colours the others by its weights in the chosen head. Without a script the page shows nothing of it.
/// Its data are the words {"tokens", "layers", "heads", "top", "keys", "weights", "layer", "head", "query"}. "keys" and
/// "weights" are places among the numbers: see embedded_data.h. They are rounded to float32. The last three say what is
/// shown first; "layer" is a place among the layers.
std::string token_strip(const TokenStrip& strip);

/// What the page of `gainlens look --out` is about.
struct ReadLook {
  const PromptLook* look;
  std::int64_t query;  ///< position whose numbers stand in the table of heads
  std::string model;   ///< as the command named it; untrusted

  std::string label() const { return "prompt"; }
};

/// Most numbers of the page's strip of tokens: of a longer prompt it is left out, and the page says so.
inline constexpr std::size_t max_strip_numbers = 400'000;

/// Writes the page of a prompt into `out`: see write_files(). Besides the page there are tokens.csv, next.csv,
/// heads.csv (every head at the query), keys.csv, and what was asked for: query.csv, lens.csv and
/// lens-layers.csv (every position that was read), parts.csv, segments.csv.
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_look_report(const ReadLook& read, const std::filesystem::path& out);

}  // namespace gainlens::reports
