// A library to preload into the program for many runs (served_main.h). Words of a request: working folder, file for
// stdout, file for stderr, and the arguments of the program from its name on.
#include "support/served_main.h"

namespace gainlens::testing {

void prepare_run(const std::vector<std::string>& request, std::vector<char*>& arguments) {
  if (request.size() < 4 || ::chdir(request[0].c_str()) != 0) ::_exit(125);
  redirect(STDOUT_FILENO, request[1].c_str());
  redirect(STDERR_FILENO, request[2].c_str());
  ::unsetenv("LD_PRELOAD");
  arguments.clear();
  for (auto word = request.begin() + 3; word != request.end(); ++word)
    arguments.push_back(const_cast<char*>(word->c_str()));
}

}  // namespace gainlens::testing
