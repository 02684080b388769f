#pragma once

namespace gainlens::runfile {

inline constexpr const char* run_file_name = "run.h5";

}  // namespace gainlens::runfile
