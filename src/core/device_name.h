#pragma once

#include <optional>
#include <string_view>

namespace gainlens {

/// The device that a name stands for: the number of a GPU ("cuda:N"; "cuda" is the first one), -1 for "cpu".
/// Nothing for another text. Whether there is such a GPU is another question.
std::optional<int> device_number(std::string_view name);

}  // namespace gainlens
