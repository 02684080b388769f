#include "cli/application.h"
#include "cli/bus_error.h"
#include "cli/standard_streams.h"

#include <cstdio>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

/// Every layer makes and drops tensors of tens of megabytes. The C library would fetch each from the system anew,
/// zeroed page by page: some 7% of a sweep of a small model. Kept, they serve the next layer.
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
  // Everything is written and closed by now; the destructors of libtorch's globals would only take another tenth of a
  // second.
  std::fflush(nullptr);
  std::_Exit(code);
}
