#include "cli/bus_error.h"
#include "cli/compute_program.h"
#include "cli/reading_application.h"
#include "cli/standard_streams.h"
#include "cli/terminate.h"

int main(int argc, char** argv) {
  gainlens::cli::explain_uncaught_exceptions();
  gainlens::cli::prepare_standard_streams();
  gainlens::cli::explain_bus_errors();
  return gainlens::cli::run_reading_application(argc, argv, [argv] { gainlens::cli::become_compute_program(argv); });
}
