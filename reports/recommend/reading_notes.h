#pragma once

#include "analyses/paper_gains.h"

#include <string>
#include <string_view>
#include <vector>

namespace gainlens::reports {

/// A note on numbers that are copied from the paper; empty without a data set of the paper.
std::string_view paper_note(const analyses::PaperMatch& paper);

/// What the numbers of a comparison of recommenders do not say.
std::vector<std::string> recommender_notes();

}  // namespace gainlens::reports
