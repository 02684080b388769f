#pragma once

#include "analyses/published_sinks.h"
#include "analyses/sink_vs_k.h"
#include "analyses/verdicts.h"

#include <optional>

namespace gainlens::analyses {

/// The ruling on prediction 1: whether heads with more BOS mass have the larger K. The parameters and the rule are
/// those of verdicts(). With `any` a second claim, about sinks on any key, stands beside the paper's and decides
/// nothing.
Prediction sink_prediction(const SinkVsK& sinks, const Maybe<SinkCount>& published, const std::optional<AnySinks>& any);

}  // namespace gainlens::analyses
