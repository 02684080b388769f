#pragma once

namespace gainlens::cli {

/// From now on, reading beyond the end of a mapped file that was shortened since ends the program with one line on
/// stderr and exit code 2, where it would else be killed by SIGBUS. Other causes of that signal are left to the system.
void explain_bus_errors();

}  // namespace gainlens::cli
