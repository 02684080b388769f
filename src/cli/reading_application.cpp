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

/// Whether the command line names no subcommand but `inspect`, so that all that it can mean is known here.
bool knows_subcommand(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() || (chosen.size() == 1 && chosen.front()->get_name() == "inspect");
}

void parse_and_run(int argc, const char* const* argv, const std::function<void()>& compute) {
  CLI::App app;
  GlobalOptions global;
  Action action;
  describe_reading_subcommands(app, global, action, compute);
  try {
    parse_command_line(app, argc, argv);
  } catch (const CLI::CallForHelp& help) {
    if (!knows_subcommand(app)) compute();
    print_help(app, help);
    return;
  } catch (const CLI::CallForVersion& version) {  // the other program describes the processor too
    try {
      compute();
    } catch (const RunFailed& failure) {
      print_help(app, version);
      print_notice("gainlens: warning: {}\n", failure.what());
      return;
    }
  } catch (const CLI::Success&) {  // the help of every subcommand
    compute();
  } catch (const InvalidArgument&) {  // an option of another subcommand, or a mistake: explaining it takes all options
    try {
      compute();
    } catch (const RunFailed&) {
      if (!knows_subcommand(app)) throw;
    }
    throw;
  }
  if (!action) compute();
  check_global_options(app, global);
  action();
  flush_results();
}

}  // namespace

void describe_reading_subcommands(CLI::App& app, GlobalOptions& global, Action& action,
                                  const std::function<void()>& compute) {
  describe_application(app, global, [] { return std::string("gainlens " GAINLENS_VERSION); });
  add_subcommands(app, global, action, compute);
}

int run_reading_application(int argc, const char* const* argv, const std::function<void()>& compute) {
  return exit_code_of([&] {
    parse_and_run(argc, argv, [&compute] {
      compute();
      throw_internal_error(__FILE__, __LINE__, "handing over to the program that computes has returned");
    });
  });
}

}  // namespace gainlens::cli
