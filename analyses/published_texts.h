#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::analyses {

/// The files of data/published: name without .csv, content. CMakeLists.txt makes their source.
const std::vector<std::pair<std::string_view, std::string_view>>& published_texts();

}  // namespace gainlens::analyses
