#include "cli/reading_application.h"

#include "cli/application_parts.h"
#include "cli/inspect_parts.h"
#include "cli/parse_errors.h"
#include "core/console.h"
#include "core/error.h"

#include <string>

namespace gainlens::cli {
namespace {

/// Adds the subcommands. Those that need libtorch have only a name and a description: enough for the overview, and to
/// tell the name of a subcommand from a path.
void add_subcommands(CLI::App& app, const GlobalOptions& global, Action& action, const std::function<void()>& compute) {
  for (const Subcommand& subcommand : subcommands()) {
    if (subcommand.name == "inspect") {
      add_inspect_with(app, global, action,
                       {[compute](const auto&...) { compute(); }, [compute](const auto&...) { compute(); }});
    } else {
      app.add_subcommand(std::string(subcommand.name), std::string(subcommand.description));
    }
  }
}

/// Whether the help that the command line asks for needs no subcommand but `inspect`.
bool knows_help(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() || (chosen.size() == 1 && chosen.front()->get_name() == "inspect");
}

void parse_and_run(int argc, const char* const* argv, const std::function<void()>& compute) {
  CLI::App app;
  GlobalOptions global;
  describe_application(app, global, [] { return std::string(); });
  Action action;
  add_subcommands(app, global, action, compute);
  try {
    parse_command_line(app, argc, argv);
  } catch (const CLI::CallForHelp& help) {
    if (!knows_help(app)) compute();
    print_help(app, help);
    return;
  } catch (const CLI::Success&) {  // the version, which describes the processor, or the help of every subcommand
    compute();
  } catch (const InvalidArgument&) {  // an option of another subcommand, or a mistake: explaining it takes all options
    compute();
  }
  if (!action) compute();
  check_global_options(global);
  action();
  flush_results();
}

}  // namespace

int run_reading_application(int argc, const char* const* argv, const std::function<void()>& compute) {
  return exit_code_of([&] {
    parse_and_run(argc, argv, [&compute] {
      compute();
      throw_internal_error(__FILE__, __LINE__, "handing over to the program that computes has returned");
    });
  });
}

}  // namespace gainlens::cli
