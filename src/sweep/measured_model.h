#pragma once

#include "hooks/hooked_model.h"
#include "runfile/request.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// What a request says of the model. Nothing of it is said anywhere else: what a run holds follows from the model.
/// @param layers  original indices of the layers that are measured, in order
runfile::MeasuredModel measured_model(std::string family, const hooks::AttentionLayout& layout,
                                      std::vector<std::int64_t> layers);

}  // namespace gainlens::sweep
