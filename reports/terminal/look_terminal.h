#pragma once

#include "core/prompt_look.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// The token at a position: "' Paris'", or "token 6342" where ids were given. Safe to print.
std::string position_text(const PromptLook& look, std::int64_t position);

/// A key that many queries look at, over all heads.
struct SinkKey {
  std::int64_t position = 0;
  double mean = 0;         ///< over heads, of the mean weight over the queries that see it
  std::int64_t heads = 0;  ///< in which that is at least `sink_column`
};
inline constexpr double sink_column = 0.3;

/// The keys with the largest mean weight. The last keys are seen by few queries, each of
/// which gives itself some weight: keys of the last quarter of the prompt are left out where it has 8 tokens or more.
std::vector<SinkKey> sink_keys(const PromptLook& look, std::size_t most = 16);

/// What a person wants to see: tokens, next tokens, a line for each head at one query, keys that many queries look at,
/// and what was asked for besides.
/// @param query  position whose numbers stand in the lines of heads
std::string print_look(const PromptLook& look, std::int64_t query);

/// The line for programs (docs/look.md), in pieces: a long prompt makes a long line.
/// @param write  called with one piece after another; the last one ends the line
void write_look_json(const PromptLook& look, const std::function<void(std::string_view)>& write);

}  // namespace gainlens::reports
