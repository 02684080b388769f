#pragma once

#include <string_view>

namespace gainlens::runfile {

/// The end of Request::bos_policy where `--bos never` leaves out a BOS that the tokenizer would put first. Whoever
/// reads the run knows this from the words alone: the tokenizer is not part of a run.
inline constexpr std::string_view bos_left_out = "the tokenizer's own configuration adds one)";

}  // namespace gainlens::runfile
