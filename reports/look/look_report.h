#pragma once

#include "core/prompt_look.h"
#include "reports/made_report.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace gainlens::reports {

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
