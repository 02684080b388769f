#include "runfile/made_recommend_run.h"
#include "runfile/made_run.h"

#include <cstdio>
#include <exception>
#include <string_view>

/// Makes a run in a folder, for tests in which another process must make or read it: that of made_run.h, or with a
/// second argument `recommend` the uneven one of made_recommend_run.h, in a folder that exists.
int main(int argc, char** argv) {
  const bool recommend = argc == 3 && std::string_view(argv[2]) == "recommend";
  if (argc != 2 && !recommend) return 2;
  try {
    if (recommend) {
      gainlens::runfile::write_recommend_run(std::filesystem::path(argv[1]) / "run.h5",
                                             gainlens::testing::uneven_recommend_run(), "1.2.3");
    } else {
      gainlens::testing::make_run(argv[1], gainlens::testing::made_request());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
