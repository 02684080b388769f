#include "cli/inspect_parts.h"
#include "core/quantity.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/checkpoint/memory_needed.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::cli {
namespace {

using models::ComputeDtype;

/// Another way to run the sweep, as its options say it.
struct Remedy {
  std::string options;
  std::string key;  ///< of its bytes in the JSON object
  std::uint64_t bytes;
};

std::vector<Remedy> remedies(const models::DecoderConfig& config, models::MemoryOptions options) {
  std::vector<Remedy> all;
  const auto add = [&](const std::string& words, const std::string& key) {
    all.push_back({words, key, memory_needed(config, options).total()});
  };
  const bool wide = models::bytes_of(options.dtype) > 2;
  const ComputeDtype asked = options.dtype;
  if (wide) {
    options.dtype = ComputeDtype::bfloat16;
    add("--dtype bfloat16", "bfloat16_bytes");
    options.dtype = asked;
  }
  options.stream_weights = true;
  add("--stream-weights", "streamed_bytes");
  if (wide) {
    options.dtype = ComputeDtype::bfloat16;
    add("--dtype bfloat16 --stream-weights", "streamed_bfloat16_bytes");
  }
  return all;
}

/// What makes a sweep fit that needs more memory than there is.
std::string how_it_fits(std::uint64_t needed, std::uint64_t available, const std::string& dtype,
                        const std::vector<Remedy>& all) {
  std::vector<std::string> enough;
  for (const Remedy& remedy : all) {
    const bool both = remedy.key == all.back().key && all.size() > 1;
    if (remedy.bytes <= available && (!both || enough.empty()))
      enough.push_back(fmt::format("{} (about {})", remedy.options, format_bytes(remedy.bytes)));
  }
  const std::string problem = fmt::format("{} needs {} of {}", dtype, format_bytes(needed), format_bytes(available));
  if (enough.empty()) {
    return fmt::format("elsewhere; here {}, and {} with {}: give shorter --lengths, or use a machine with more memory",
                       problem, format_bytes(all.back().bytes), all.back().options);
  }
  const bool narrow = all.front().key == "bfloat16_bytes" && all.front().bytes <= available;
  return fmt::format("{}; {}: give {}", narrow ? "in bfloat16" : "with other options", problem,
                     fmt::join(enough, " or "));
}

}  // namespace

std::int64_t inspected_length(const models::DecoderConfig& config, const MemoryQuestion& question) {
  return question.length.empty() ? config.max_positions : parse_count(question.length, "--length");
}

void add_memory(const models::DecoderConfig& config, const MemoryQuestion& question,
                std::optional<std::uint64_t> available, Findings& findings) {
  const std::int64_t length = inspected_length(config, question);
  const auto dtype = models::parse_compute_dtype(question.dtype, "--dtype");
  const models::MemoryOptions options{.dtype = dtype, .positions = length};
  const std::uint64_t needed = memory_needed(config, options).total();
  const std::string name(models::name_of(dtype));
  const std::vector<Remedy> others = remedies(config, options);
  const bool too_large = available && needed > *available;
  const auto streamed = std::ranges::find(others, "--stream-weights", &Remedy::options);
  findings.add_line(
      fmt::format("memory at {}", format_count(length)),
      fmt::format(
          "about {} in {}{}{}{}", format_bytes(needed), name,
          length > config.max_positions ? "; beyond the context limit, for --allow-extrapolation" : "",
          available ? fmt::format("; {} available", format_bytes(*available)) : "",
          too_large ? fmt::format(": does not fit; --stream-weights needs {}", format_bytes(streamed->bytes)) : ""));
  Json json = {{"length", length},
               {"dtype", name},
               {"bytes", needed},
               {"available", available ? Json(*available) : Json(nullptr)},
               {"fits", available ? Json(needed <= *available) : Json(nullptr)}};
  for (const Remedy& remedy : others) json[remedy.key] = remedy.bytes;
  findings.add_json("memory", json);
  if (too_large) findings.usable_how(how_it_fits(needed, *available, name, others));
}

std::string sink_test_doubt(const models::DecoderConfig& config) {
  if (config.kv_heads > 1) return "";
  return "one KV head a layer: no permutation test can decide whether sink heads have the larger K, so sink-vs-k will "
         "say 'not decidable'";
}

}  // namespace gainlens::cli
