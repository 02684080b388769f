#pragma once

namespace gainlens::cli {

/// Installs a handler for SIGBUS. A mapped file may be shortened while the program reads it. The handler then prints
/// one line on stderr and ends the program with exit code 2. Other causes of SIGBUS are left to the system.
void explain_bus_errors();

}  // namespace gainlens::cli
