#pragma once

#include "recommend/backbone.h"

#include <string>

namespace gainlens::recommend {

/// A filter whose gain acts in a ranking.
struct ActingFilter {
  training::FilterHost& host;
  double share;  ///< of the filter that is in force, above 0
};
/// @param where  names the model in messages
/// @throws InvalidArgument  the model has no Kalman gain (names its arm), or its filter is not in force
ActingFilter acting_filter(Backbone& model, const std::string& where);

}  // namespace gainlens::recommend
