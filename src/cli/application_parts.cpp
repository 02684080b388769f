#include "cli/application.h"
#include "cli/inspect_parts.h"
#include "cli/parse_errors.h"
#include "cli/terminal_listener.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/device_name.h"
#include "core/error.h"
#include "core/json_words.h"
#include "core/terminal_text.h"
#include "core/thread_count.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <new>
#include <sstream>
#include <string>

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
    "A run is a folder that sweep makes and that check, report, sinks, sink-vs-k and audit read. The same sweep "
    "command\n"
    "called again resumes the run, or ends at once if the run is complete.\n"
    "Results go to stdout (as JSON with --json). Progress and messages go to stderr.\n"
    "Start with: gainlens inspect MODEL; gainlens sweep MODEL --text F --out RUN; gainlens report RUN\n"
    "Documentation: docs/README.md in the source tree. Each analysis has a page there.";

#define GAINLENS_SUBCOMMAND(identifier, name, on_gpu, draws, description) Subcommand{name, description, on_gpu, draws},
constexpr Subcommand all_subcommands[] = {GAINLENS_SUBCOMMANDS(GAINLENS_SUBCOMMAND)};
#undef GAINLENS_SUBCOMMAND

int fail(ExitCode code, std::string_view message) {
  print_notice("gainlens: error: {}\n", terminal_line(message));
  return code;
}

/// Empty, or why the text is not a seed. (CLI11 would take -1 as the largest number.)
std::string is_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return fmt::format("'{}' must be a whole number from 0 to 18446744073709551615", printable(text, 40));
}

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

std::span<const Subcommand> subcommands() {
  return all_subcommands;
}

const Subcommand& subcommand_named(std::string_view name) {
  const auto* const found = std::ranges::find(all_subcommands, name, &Subcommand::name);
  ASSERT(found != std::end(all_subcommands), "no subcommand is called {}", name);
  return *found;
}

CLI::App* add_subcommand(CLI::App& app, const Subcommand& subcommand, const std::string& example,
                         const std::string& details) {
  CLI::App* command = app.add_subcommand(std::string(subcommand.name), std::string(subcommand.description));
  command->footer(
      fmt::format("{}{}Example:\n  {}\n\n{}", details, details.empty() ? "" : "\n\n", example, exit_status));
  return command;
}

void describe_application(CLI::App& app, GlobalOptions& global, const std::function<std::string()>& version) {
  app.description("gainlens: how much evidence is an attention head really based on?");
  app.name("gainlens");
  app.set_version_flag("--version", version);
  app.set_help_all_flag("--help-all", "Print the help of every subcommand and exit");
  app.require_subcommand(1);
  app.fallthrough();
  app.get_formatter()->column_width(34);
  app.footer(fmt::format("{}\n\n{}", overview, exit_status));
  app.add_option("--threads", global.threads,
                 "Number of threads, at most 4 for each core of the machine, or 64 if that is more; 0: all cores")
      ->capture_default_str();
  app.add_option("--device", global.device,
                 "Device to compute on: cpu, or cuda:N for a GPU (docs/gpu.md says which subcommands take one)")
      ->capture_default_str();
  app.add_option("--seed", global.seed,
                 "Seed of all random numbers: the permutations of report and sink-vs-k, the weights and data order of "
                 "train, the draws of generate and estimators, the groups of k-by-frequency and error-by-precision")
      ->check(is_seed, "UINT64")
      ->capture_default_str();
  app.add_flag("--quiet", global.quiet, "Print no progress to stderr");
  app.add_flag("--json", global.json, "Print results to stdout as JSON");
}

void check_working_folder() {
  std::error_code error;
  [[maybe_unused]] const std::filesystem::path ignored = std::filesystem::current_path(error);
  CHECK(error != std::errc::no_such_file_or_directory,
        "the working folder was deleted; change to one that exists (cd) and run the command again");
}

void check_global_options(const CLI::App& app, const GlobalOptions& global) {
  check_threads(global.threads);
  CHECK(device_number(global.device), "--device: '{}'; must be cpu or cuda:N", printable(global.device, 40));
  for (const CLI::App* command : app.get_subcommands())
    CHECK(app.count("--seed") == 0 || subcommand_named(command->get_name()).draws,
          "--seed: {} draws nothing at random; leave it out", command->get_name());
  if (global.device == "cpu") return;
  for (const CLI::App* command : app.get_subcommands()) {
    CHECK(subcommand_named(command->get_name()).on_gpu, "--device: '{}'; {} computes on the CPU; use --device cpu",
          global.device, command->get_name());
  }
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

void print_help(const CLI::App& app, const CLI::Success& help) {
  std::ostringstream text;
  app.exit(help, text, text);
  write_result(text.str());
  flush_results();
}

int exit_code_of(const std::function<void()>& run) {
  TerminalListener terminal;
  const ScopedListener told(terminal);
  try {
    run();
    return done;
  } catch (const InvalidArgument& error) {
    return fail(wrong_request, error.what());
  } catch (const ReaderGone&) {
    return reader_gone;
  } catch (const RunFailed& error) {
    return fail(run_failed, error.what());
  } catch (const InternalError& error) {
    return fail(run_failed, fmt::format("internal error, please report it: {}", error.what()));
  } catch (const std::filesystem::filesystem_error& error) {  // a loop of links, a name too long, no permission
    return fail(may_work_later(error.code().value()) ? run_failed : wrong_request,
                fmt::format("{}: {}", printable(error.path1().string()), error.code().message()));
  } catch (const Json::exception& error) {  // a file of JSON that its reader did not look into
    return fail(wrong_request, fmt::format("a file of JSON is damaged or of another version: {}; delete the run, or "
                                           "repeat the command that wrote it",
                                           json_error_in_words(error)));
  } catch (const std::bad_alloc&) {
    return fail(run_failed,
                "out of memory; free some, or raise the limits (ulimit -v, ulimit -d). A sweep needs less with shorter "
                "--lengths, --stream-weights, or --dtype bfloat16, which halves the memory of the weights");
  } catch (const std::exception& error) {
    return fail(run_failed, printable(first_line(error.what()), 400));
  }
}

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
