#include "cli/application.h"

int main(int argc, char** argv) {
  return gainlens::cli::run_application(argc, argv);
}
