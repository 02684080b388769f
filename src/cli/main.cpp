#include "cli/application.h"
#include "cli/program_start.h"

int main(int argc, char** argv) {
  gainlens::cli::explain_uncaught_exceptions();
  gainlens::cli::prepare_standard_streams();
  gainlens::cli::explain_bus_errors();
  return gainlens::cli::run_reading_application(argc, argv, [argv] { gainlens::cli::become_compute_program(argv); });
}
