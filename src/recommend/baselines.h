#pragma once

#include "recommend/full_ranking.h"

#include <memory>
#include <string_view>

namespace gainlens::recommend {

/// Scores without training, for scale.
/// - "popularity": how often an item stands in the training items.
/// - "markov": how often an item follows the user's last item in the training items, over all users; items that follow
///   it equally often are ordered by popularity.
/// @throws InternalError  another name
std::unique_ptr<Scorer> make_baseline(std::string_view name, const data::LeaveOneOut& split);

}  // namespace gainlens::recommend
