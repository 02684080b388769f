#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/made_run.h"

#include <cstdio>
#include <exception>
#include <string_view>

/// Makes a run in a folder, for tests in which another process must make or read it: that of made_run.h, or with a
/// second argument `recommend` or `experiment` the uneven one of made_recommend_run.h or made_experiment_run.h, in a
/// folder that exists.
int main(int argc, char** argv) {
  const std::string_view kind = argc == 3 ? argv[2] : "";
  if (argc != 2 && kind != "recommend" && kind != "experiment") return 2;
  try {
    if (kind == "experiment") {
      gainlens::runfile::write_experiment_run(std::filesystem::path(argv[1]) / "run.h5",
                                              gainlens::testing::uneven_experiment_run(), "1.2.3");
    } else if (kind == "recommend") {
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
