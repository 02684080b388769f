#include "cli/bus_error.h"
#include "cli/compute_program.h"
#include "cli/reading_application.h"
#include "cli/standard_streams.h"

int main(int argc, char** argv) {
  gainlens::cli::prepare_standard_streams();
  gainlens::cli::explain_bus_errors();
  return gainlens::cli::run_reading_application(argc, argv, [argv] { gainlens::cli::become_compute_program(argv); });
}
