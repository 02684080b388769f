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

/// Said where there are several seeds.
inline constexpr const char* heads_of_seeds =
    "The heads of a layer are numbered by chance in each training: over several seeds, a head stands for any head of "
    "its layer. Sweep one training (RUN/ARM/seed-N) to look at single heads.";

/// "0.9862 [0.9859, 0.9865]": with as many decimals as the interval has something to say of, 2 (below 1: 3) to 6. A
/// gain near 1 has all of its information behind the second digit.
std::string mean_in_words(const analyses::SeedEstimate& mean);

/// "0.1": layer and head.
std::string name_of(const analyses::Head& head);

}  // namespace gainlens::reports
