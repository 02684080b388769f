#include "cli/application.h"
#include "cli/bus_error.h"
#include "cli/standard_streams.h"
#include "cli/tensor_memory.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  gainlens::cli::prepare_standard_streams();
#ifndef __SANITIZE_ADDRESS__  // it would not see a use of a freed tensor
  gainlens::cli::keep_tensor_memory();
#endif
  gainlens::cli::explain_bus_errors();
  const int code = gainlens::cli::run_application(argc, argv);
  // All files are written and closed by now. The destructors of libtorch's globals would only take a tenth of a second.
  std::fflush(nullptr);
  std::_Exit(code);
}
