#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gainlens::runfile {

/// The variant of a training whose answers are corrupted by so many percent: "np10", "np2.5".
std::string noise_variant(double percent);

/// The level of such a variant; nothing for a name that is none.
std::optional<double> noise_of_variant(std::string_view variant);

}  // namespace gainlens::runfile
