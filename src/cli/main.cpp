#include "cli/application.h"
#include "cli/bus_error.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  gainlens::cli::explain_bus_errors();
  const int code = gainlens::cli::run_application(argc, argv);
  // Everything is written and closed by now; the destructors of libtorch's globals would only take another tenth of a second.
  std::fflush(nullptr);
  std::_Exit(code);
}
