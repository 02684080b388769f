#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/sink_count.h"
#include "runfile/run_reader.h"

#include <cstdint>
#include <string>

namespace gainlens::analyses {

/// Length in tokens of the texts in which Gu et al. count sinks. A column mean is a mean over all later queries, so it
/// shrinks with the context: published percentages hold for this length alone.
inline constexpr std::int64_t published_sink_length = 64;

/// Counts the sinks on key 0 at published_sink_length, over chunks and heads of the layers that see it there. Missing
/// if the run has no complete chunk of this length, or no column mean.
Maybe<SinkCount> published_sinks(const runfile::RunReader& reader, const Options& options = {});

/// "12 of 72 (head, chunk) pairs (16.67%) at 64 tokens, ...", to be set beside percentages that others publish.
std::string published_sinks_in_words(const SinkCount& count);

}  // namespace gainlens::analyses
