#pragma once

#include "reports/section.h"

#include <span>
#include <string_view>

namespace gainlens::reports {

/// On numbers that are copied from the paper.
inline constexpr std::string_view paper_note =
    "The paper's numbers stand beside ours by the name of the data file. The paper's version of the data may differ; "
    "its split is not known.";

/// What the numbers of a comparison do not say.
std::span<const std::string_view> comparison_notes();

/// A list of notes, in HTML.
Block list(std::span<const std::string_view> notes);

}  // namespace gainlens::reports
