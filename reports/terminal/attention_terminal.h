#pragma once

#include "analyses/attention_evidence.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// What `gainlens sweep` prints of an arm of recommenders: a table of the heads, one of their correlations, and what
/// both say in words.
std::string print_attention(const analyses::AttentionReading& reading);

/// The sentences alone, with symbols as in typography.h.
std::vector<std::string> attention_sentences(const analyses::AttentionReading& reading);

/// "0.1": layer and head.
std::string name_of(const analyses::Head& head);

}  // namespace gainlens::reports
