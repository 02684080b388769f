#include "runfile/made_run.h"

#include <cstdio>
#include <exception>

/// Makes the run of made_run.h in the folder given as the only argument, for tests in which another process must make
/// it.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    gainlens::testing::make_run(argv[1], gainlens::testing::made_request());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
