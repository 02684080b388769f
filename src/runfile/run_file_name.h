#pragma once

namespace gainlens::runfile {

inline constexpr const char* run_file_name = "run.h5";
inline constexpr const char* request_file_name = "request.json";

}  // namespace gainlens::runfile
