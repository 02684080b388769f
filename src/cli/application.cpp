#include "cli/application.h"

#include "cli/parse_errors.h"
#include "core/check.h"
#include "core/console.h"
#include "core/thread_count.h"
#include "kernels/linear/product_kernel.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <new>
#include <string_view>

namespace gainlens::cli {
namespace {

void start_threads(std::int64_t threads) {
  check_threads_can_start(threads > 0 ? threads : at::get_num_threads());
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
}

void parse_and_run(int argc, const char* const* argv) {
  CLI::App app;
  GlobalOptions global;
  Action action;
  describe_subcommands(app, global, action);
  try {
    parse_command_line(app, argc, argv);
  } catch (const CLI::Success& help) {
    print_help(app, help);
    return;
  }
  check_global_options(app, global);
  start_threads(global.threads);
  ASSERT(action, "a subcommand was parsed but set no action");
  action();
  flush_results();
}

}  // namespace

void describe_subcommands(CLI::App& app, GlobalOptions& global, Action& action) {
  describe_application(app, global,
                       [] { return fmt::format("gainlens {}\n{}", GAINLENS_VERSION, kernels::describe_processor()); });
#define GAINLENS_ADDED(identifier, ...) add_##identifier(app, global, action);
  GAINLENS_SUBCOMMANDS(GAINLENS_ADDED)
#undef GAINLENS_ADDED
}

int run_application(int argc, const char* const* argv) {
  return exit_code_of([argc, argv] {
    try {
      parse_and_run(argc, argv);
    } catch (const c10::Error& error) {  // the other lines of its message say where in libtorch it arose
      if (std::string_view(error.what_without_backtrace()).find("can't allocate memory") != std::string_view::npos)
        throw std::bad_alloc();
      throw_run_failed("libtorch: {}", first_line(error.what_without_backtrace()));
    }
  });
}

}  // namespace gainlens::cli
