#pragma once

#include "recommend/settings.h"
#include "recommend/variants.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::recommend {

/// The number of layers of the models of these settings; 0: their backbone has no such setting.
std::int64_t layers_of(const Settings& settings);

/// Why the setting with this key changes no number of an arm, beside the other settings: "arm markov is not trained",
/// "'loss' is "full"", or the reason of bft::why_idle(). Empty: it acts.
/// @param arm  one of arm_names()
std::string why_idle(const Settings& settings, std::string_view arm, std::string_view key);

/// Refuses variants with which an arm would be trained twice to the same numbers.
/// @param settings  of each variant
/// @param run       those without a variant
/// @throws InvalidArgument  the settings that an arm reads are those of the run, or those of another variant
void check_variants_of_arms(const std::vector<std::string>& arms, const std::vector<Variant>& variants,
                            const std::map<std::string, Settings>& settings, const Settings& run);

}  // namespace gainlens::recommend
