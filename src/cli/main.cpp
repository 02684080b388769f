#include "cli/application.h"
#include "cli/bus_error.h"
#include "cli/standard_streams.h"

#include <cstdio>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

/// Makes the C library keep freed memory for the next layer. Every layer allocates and frees tensors of tens of
/// megabytes. By default the C library gets each of them anew from the system, which clears it page by page. That takes
/// about 7% of the time of a small model's sweep.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  gainlens::cli::prepare_standard_streams();
  keep_freed_memory();
  gainlens::cli::explain_bus_errors();
  const int code = gainlens::cli::run_application(argc, argv);
  // All files are written and closed by now. The destructors of libtorch's globals would only take a tenth of a second.
  std::fflush(nullptr);
  std::_Exit(code);
}
