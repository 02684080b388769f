#pragma once

#include "runfile/recommend_run.h"

#include <string>

namespace gainlens::runfile {

/// The same run with its validation items in the place of the test items: its targets, ranks, metrics and known items.
/// What the lists of the test are like is left out.
/// @param where  the run, for messages
/// @throws InvalidArgument  a finished training has no ranks of validation items (earlier versions did not store them)
RecommendRun on_validation_items(const RecommendRun& run, const std::string& where);

}  // namespace gainlens::runfile
