#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// THE list of subcommands, in the order of the help: entry(NAME, "name", on_gpu, draws, "description"). The function
// add_NAME adds it; the other words are those of cli::Subcommand.

// clang-format off
#define GAINLENS_SUBCOMMANDS(entry)                                                                                   \
  entry(sweep, "sweep", true, true,                                                                                   \
        "Run a frozen model over text at growing context lengths and store the statistics of every head")             \
  entry(report, "report", false, true,                                                                                \
        "Write the figures and tables of a run as a page like the results section of a paper")                        \
  entry(sinks, "sinks", false, false,                                                                                 \
        "Which keys take most attention, wherever they are? List the sinks of every head with their tokens")          \
  entry(sink_vs_k, "sink-vs-k", false, true,                                                                          \
        "Do heads with much attention on token 0 have a gain near 1? Correlate BOS mass with K over heads")           \
  entry(audit, "audit", false, false,                                                                                 \
        "Check the sink lemma at every head, and compare the run with statements of the paper that are false "        \
        "as printed")                                                                                                 \
  entry(check, "check", false, false,                                                                                 \
        "Look for what is wrong with a run or a training, and say what to do (exit status 1 if so)")                  \
  entry(capture, "capture", true, false,                                                                              \
        "Run a model over a text, or its first tokens, and write the activations at hook sites to a "                 \
        "safetensors file")                                                                                           \
  entry(look, "look", true, false,                                                                                    \
        "Look at one prompt: next tokens, and for every head what it attends to and on how much evidence")            \
  entry(generate, "generate", true, true,                                                                             \
        "Continue a prompt: greedily or at random, from a cache of keys and values")                                  \
  entry(intervene, "intervene", true, true,                                                                           \
        "What does a head mean for the model? Change heads, gates or layers, and measure the change of the "          \
        "loss")                                                                                                       \
  entry(gate_arms, "gate-arms", true, true,                                                                           \
        "Could the gain stand in the place of a gate? Put it there, with controls, as the context grows")             \
  entry(inactive_heads, "inactive-heads", true, true,                                                                 \
        "Which heads does nothing need? Set those to zero that a score calls inactive, and compare the scores")       \
  entry(inspect, "inspect", false, false,                                                                             \
        "Show what a checkpoint, a run or a data set holds, and whether it can be used (exit status 2 if not)")       \
  entry(hooks, "hooks", false, false,                                                                                 \
        "List the hook sites of a model and the shapes of their tensors")                                             \
  entry(train, "train", false, true,                                                                                  \
        "Train a model from scratch")                                                                                 \
  entry(evaluate, "evaluate", false, false,                                                                           \
        "Measure how well a model predicts")                                                                          \
  entry(compare, "compare", false, true,                                                                              \
        "Compare arms of trainings, paired by seed, with tests that count users or questions too")                    \
  entry(gain_by, "gain-by", false, true,                                                                              \
        "When does an arm gain? Compare the arms of runs whose data differ in one number, and draw it")               \
  entry(k_by_frequency, "k-by-frequency", false, true,                                                                \
        "Does the filter of a recommender treat rare items otherwise than frequent ones? Correlate K with "           \
        "counts")                                                                                                     \
  entry(error_by_precision, "error-by-precision", false, true,                                                        \
        "Does the precision of a recommender's filter order users by the error of what it recommends?")               \
  entry(make_histories, "make-histories", false, true,                                                                \
        "Make data for train recommend: thinned or noisy histories, or synthetic ones whose noise is known")          \
  entry(sensitivity, "sensitivity", false, false,                                                                     \
        "Which settings of a recommender matter? Compare each setting of a grid with the reference")                  \
  entry(estimators, "estimators", false, true,                                                                        \
        "Compare every estimator of the variance of an estimate with the truth, by simulation")
// clang-format on

namespace gainlens::cli {

/// Options that every subcommand takes.
struct GlobalOptions {
  std::int64_t threads = 0;  ///< 0: all cores of the machine
  std::string device = "cpu";
  bool quiet = false;  ///< no progress on stderr
  bool json = false;   ///< results on stdout as JSON
  std::uint64_t seed = 0;
};

// What the two programs share: the command line up to its subcommands, and how a program ends.

/// What a subcommand does once the whole command line has been read.
using Action = std::function<void()>;

/// A subcommand as the help of its application lists it.
struct Subcommand {
  std::string_view name;
  std::string_view description;
  bool on_gpu = false;  ///< whether it takes another --device than the CPU
  bool draws = false;   ///< whether something in it is drawn at random, so that it takes --seed
};

/// The subcommands of gainlens, in the order of its help.
std::span<const Subcommand> subcommands();
/// @throws InternalError  there is none
const Subcommand& subcommand_named(std::string_view name);

/// Adds a subcommand. Its help ends with the details (units, files, how it resumes), an example, and the exit status.
/// @param app      the application, or the subcommand that this one belongs to
/// @param example  a command that works as printed
/// @param details  lines that the caller has wrapped; may be empty
CLI::App* add_subcommand(CLI::App& app, const Subcommand& subcommand, const std::string& example,
                         const std::string& details = "");
/// Lets a subcommand that was parsed choose what the program does.
inline void set_action(CLI::App& command, Action& action, Action chosen) {
  command.callback([&action, chosen = std::move(chosen)] { action = chosen; });
}

/// Gives a new application its name, its help and its global options.
/// @param global   gets the options when the command line is parsed; outlives the application
/// @param version  the text of --version
void describe_application(CLI::App& app, GlobalOptions& global, const std::function<std::string()>& version);

/// @throws InvalidArgument  the working folder was deleted. Relative paths then lead nowhere, and oneMKL, a part of
///     libtorch, ends the process
void check_working_folder();

/// @param app  has parsed the command line
/// @throws InvalidArgument  --threads or --device is wrong, the subcommand computes on the CPU alone, or it draws
///     nothing at random and --seed was given
void check_global_options(const CLI::App& app, const GlobalOptions& global);

std::string first_line(std::string_view text);

/// Prints the help or the version that the command line asks for.
/// @param help  what parsing has thrown
/// @throws RunFailed  as write_result()
void print_help(const CLI::App& app, const CLI::Success& help);

/// Runs it and prints every error as one line on stderr.
/// @returns the exit code of the program: 0 done, 1 the run failed, 2 the request or the input was wrong, 141 the
///     reader of standard output has closed it
int exit_code_of(const std::function<void()>& run);

// The program with every subcommand.

/// Of each subcommand, a function that adds it. Parsing the subcommand sets `action`.
#define GAINLENS_DECLARED(identifier, ...) \
  void add_##identifier(CLI::App& app, const GlobalOptions& global, Action& action);
GAINLENS_SUBCOMMANDS(GAINLENS_DECLARED)
#undef GAINLENS_DECLARED
// Those of `evaluate` and `train`.
void add_evaluate_recommend(CLI::App& evaluate, const GlobalOptions& global, Action& action);
void add_train_finetune(CLI::App& train, const GlobalOptions& global, Action& action);
void add_train_recommend(CLI::App& train, const GlobalOptions& global, Action& action);

/// Gives a new application all subcommands with their options.
/// @param global  gets the options when the command line is parsed; outlives the application, as does `action`
/// @param action  is set when a subcommand has been parsed
void describe_subcommands(CLI::App& app, GlobalOptions& global, Action& action);

/// Parses the command line, runs one subcommand, and prints every error as one line on stderr.
/// @returns as exit_code_of()
int run_application(int argc, const char* const* argv);

// The program without libtorch.

/// Does what describe_subcommands() does, but only `inspect` has its options.
/// @param compute  see below
void describe_reading_subcommands(CLI::App& app, GlobalOptions& global, Action& action,
                                  const std::function<void()>& compute);

/// The program `gainlens`. It answers `inspect` and help without libtorch, which takes a quarter of a second to load.
/// Everything else, and every command line that it does not understand, is left to the program with every subcommand.
/// If that one cannot be started, this one still tells its version, and what is wrong with a command line that names no
/// subcommand.
/// @param compute  hands over to that program; does not return. Throws RunFailed if it cannot be started
/// @returns as exit_code_of()
int run_reading_application(int argc, const char* const* argv, const std::function<void()>& compute);

}  // namespace gainlens::cli
