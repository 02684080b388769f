#pragma once

#include <filesystem>

namespace gainlens::formats {

/// Whether a file is an importance matrix (imatrix.dat) in the layout of llama.cpp before its GGUF files: a number of
/// entries, and for each the length of its name and the name of a tensor, "blk.0.attn_q.weight". False: another file,
/// or none that can be read.
bool is_importance_matrix(const std::filesystem::path& path);

}  // namespace gainlens::formats
