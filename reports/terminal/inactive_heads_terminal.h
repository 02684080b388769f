#pragma once

#include "analyses/inactive_heads.h"

#include <string>

namespace gainlens::reports {

/// The curves as a table, the best score first.
/// @param of  "16 documents of 512 tokens": what was measured
std::string print_inactive_heads(const analyses::InactiveHeads& result, const std::string& of);

}  // namespace gainlens::reports
