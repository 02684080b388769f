#include "cli/application.h"

#include "cli/commands.h"
#include "cli/parse_errors.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/thread_count.h"
#include "kernels/linear/product_kernel.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <charconv>
#include <filesystem>
#include <new>
#include <sstream>

namespace gainlens::cli {
namespace {

enum ExitCode {
  done = 0,
  run_failed = 1,
  wrong_request = 2,
  reader_gone = 141  // the code with which a shell reports SIGPIPE
};

constexpr std::string_view exit_status =
    "The global options --threads, --device, --seed, --quiet and --json may stand before or after the subcommand;\n"
    "gainlens --help explains them.\n"
    "Exit status: 0 done; 1 the run failed (full disk, NaN); 2 the request or an input was wrong: one line on stderr\n"
    "says what is wrong and how to fix it; 141 the reader of stdout closed it early, as in gainlens ... | head.";

constexpr std::string_view overview =
    "A run is a folder that sweep makes and that report, sink-vs-k and audit read. The same sweep command called\n"
    "again resumes the run, or ends at once if the run is complete.\n"
    "Results go to stdout (as JSON with --json). Progress and messages go to stderr.\n"
    "Start with: gainlens inspect MODEL; gainlens sweep MODEL --text F --out RUN; gainlens report RUN\n"
    "Documentation: docs/README.md in the source tree. Each analysis has a page there.";

int fail(ExitCode code, std::string_view message) {
  print_notice("gainlens: error: {}\n", message);
  return code;
}

/// The first line of a message from libtorch. The other lines say where in its sources the error arose.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

void apply(const GlobalOptions& global) {
  check_threads(global.threads);
  check_threads_can_start(global.threads > 0 ? global.threads : at::get_num_threads());
  if (global.threads > 0) at::set_num_threads(static_cast<int>(global.threads));
  if (global.device.starts_with("cuda"))
    throw NotCompiled(
        fmt::format("--device: '{}'; this build computes on the CPU only; use --device cpu", global.device));
  CHECK(global.device == "cpu", "--device: '{}'; must be cpu or cuda:N", printable(global.device, 40));
}

/// Empty, or why the text is not a seed. (CLI11 would take -1 as the largest number.)
std::string is_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return fmt::format("'{}' must be a whole number from 0 to 18446744073709551615", printable(text, 40));
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app{"gainlens: how much evidence is an attention head really based on?", "gainlens"};
  app.set_version_flag("--version",
                       [] { return fmt::format("gainlens {}\n{}", GAINLENS_VERSION, kernels::describe_processor()); });
  app.set_help_all_flag("--help-all", "Print the help of every subcommand and exit");
  app.require_subcommand(1);
  app.fallthrough();
  app.get_formatter()->column_width(34);
  app.footer(fmt::format("{}\n\n{}", overview, exit_status));
  GlobalOptions global;
  app.add_option("--threads", global.threads,
                 "Number of threads, at most 4 for each core of the machine, or 64 if that is more; 0: all cores")
      ->capture_default_str();
  app.add_option("--device", global.device, "Device to compute on; this build supports only cpu")
      ->capture_default_str();
  app.add_option("--seed", global.seed,
                 "Seed of all random numbers: the permutations of report and sink-vs-k, the weights and data order of "
                 "train, the draws of estimators")
      ->check(is_seed, "UINT64")
      ->capture_default_str();
  app.add_flag("--quiet", global.quiet, "Print no progress to stderr");
  app.add_flag("--json", global.json, "Print results to stdout as JSON");
  Action action;
  for (const auto add : {add_sweep, add_report, add_sink_vs_k, add_audit, add_capture, add_inspect, add_hooks,
                         add_train, add_evaluate, add_compare, add_estimators})
    add(app, global, action);

  try {
    parse_command_line(app, argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    app.exit(help, text, text);
    write_result(text.str());
    flush_results();
    return done;
  }
  apply(global);
  ASSERT(action, "a subcommand was parsed but set no action");
  action();
  flush_results();
  return done;
}

}  // namespace

CLI::App* add_subcommand(CLI::App& app, const std::string& name, const std::string& description,
                         const std::string& example, const std::string& details) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(
      fmt::format("{}{}Example:\n  {}\n\n{}", details, details.empty() ? "" : "\n\n", example, exit_status));
  return command;
}

int run_application(int argc, const char* const* argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const InvalidArgument& error) {
    return fail(wrong_request, error.what());
  } catch (const ReaderGone&) {
    return reader_gone;
  } catch (const RunFailed& error) {
    return fail(run_failed, error.what());
  } catch (const InternalError& error) {
    return fail(run_failed, fmt::format("internal error, please report it: {}", error.what()));
  } catch (const c10::Error& error) {
    return fail(run_failed, fmt::format("libtorch: {}", first_line(error.what_without_backtrace())));
  } catch (const std::filesystem::filesystem_error& error) {  // a loop of links, a name too long, no permission
    return fail(may_work_later(error.code().value()) ? run_failed : wrong_request,
                fmt::format("{}: {}", printable(error.path1().string()), error.code().message()));
  } catch (const std::bad_alloc&) {
    return fail(run_failed,
                "out of memory; use shorter --lengths, or --dtype bfloat16, which halves the memory of the weights");
  } catch (const std::exception& error) {
    return fail(run_failed, first_line(error.what()));
  }
}

}  // namespace gainlens::cli
