#include "cli/application.h"
#include "cli/bus_error.h"

int main(int argc, char** argv) {
  gainlens::cli::explain_bus_errors();
  return gainlens::cli::run_application(argc, argv);
}
