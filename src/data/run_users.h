#pragma once

#include "core/json.h"
#include "data/leave_one_out.h"
#include "runfile/recommend_run.h"

#include <string>

namespace gainlens::data {

// What a recommender run holds of its data, whoever made its ranks.

/// Gives a run the users of a split, their held-out items and lengths, and the training counts of the items.
void set_users(runfile::RecommendRun& run, const LeaveOneOut& split);

/// The object "data" of the request of a run.
/// @param name  of the data set, for readers
Json data_of_request(const LeaveOneOut& split, const std::string& name);

}  // namespace gainlens::data
