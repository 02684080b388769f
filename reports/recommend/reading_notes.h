#pragma once

#include "analyses/paper_gains.h"
#include "reports/section.h"

#include <span>
#include <string_view>

namespace gainlens::reports {

/// On numbers that are copied from the paper; empty without a data set of the paper.
std::string_view paper_note(const analyses::PaperMatch& paper);

/// What the numbers of a comparison do not say.
std::span<const std::string_view> comparison_notes();

/// A list of notes, in HTML.
Block list(std::span<const std::string_view> notes);

}  // namespace gainlens::reports
