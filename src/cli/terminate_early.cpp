// gainlens-compute explains uncaught exceptions before any of its libraries is initialised: their initialisers may
// throw. Setting the handler needs neither them nor the C library. Compiled without sanitizers.
#include "cli/terminate.h"

namespace {

void set_handler(int, char**, char**) {
  gainlens::cli::explain_uncaught_exceptions();
}

using Initialiser = void (*)(int, char**, char**);
[[gnu::used, gnu::section(".preinit_array")]] const Initialiser initialiser = set_handler;

}  // namespace
