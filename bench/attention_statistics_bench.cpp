// Compares attention with its statistics to libtorch's SDPA, composed library calls and T x T tensors. Options:
// attention_statistics_bench --help

#include "bench/bench_options.h"
#include "bench/comparison.h"
#include "bench/comparison_table.h"
#include "bench/copy_rate.h"
#include "bench/error_table.h"
#include "bench/figures.h"
#include "bench/long_error_table.h"
#include "core/atomic_file.h"
#include "core/console.h"
#include "core/error.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace gainlens::bench {
namespace {

/// Writes the results to the file of --json. Prints tables to standard output, except if the results go there.
class Output {
 public:
  explicit Output(const BenchOptions& options)
      : json_(options.json), to_stdout_(options.json && options.json->compare("-") == 0) {}

  void table(const std::string& text) const {
    if (to_stdout_) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  void results(const OrderedJson& json) const {
    if (!json_) return;
    const std::string text = json.dump(2) + "\n";
    if (to_stdout_) {
      std::fputs(text.c_str(), stdout);
    } else {
      write_file_atomically(*json_, text);
    }
  }

 private:
  std::optional<std::string> json_;
  bool to_stdout_;
};

Comparison measure(const BenchOptions& options, const Output& output) {
  Comparison comparison{.machine = this_machine(), .copy_rate = {}, .cases = {}};
  output.table(machine_line(comparison.machine) + table_notes());
  if (options.roofline) comparison.copy_rate = measured_copy_rate();
  for (const AttentionCase& shape : options.cases) {
    comparison.cases.push_back(compare_methods(shape, options.choice, options.budget));
    output.table(fmt::format("\n{}", case_table(comparison.cases.back())));
  }
  return comparison;
}

Comparison stored(const std::filesystem::path& file, const Output& output) {
  Comparison comparison = comparison_of(read_json_file(file), file.string());
  output.table(machine_line(comparison.machine) + table_notes());
  for (const CaseResult& result : comparison.cases) output.table(fmt::format("\n{}", case_table(result)));
  return comparison;
}

void run_errors(const BenchOptions& options, const Output& output) {
  if (!options.error_lengths.empty()) {
    const std::vector<LongError> errors = long_errors(options.error_lengths);
    output.table(fmt::format("{}{}", machine_line(this_machine()), long_error_table(errors)));
    output.results({{"machine", to_json(this_machine())}, {"residual_errors", to_json(errors)}});
    return;
  }
  const std::vector<WorstError> errors = measured_errors();
  output.table(fmt::format("{}{}", machine_line(this_machine()), error_table(errors)));
  output.results({{"machine", to_json(this_machine())}, {"errors", to_json(errors)}});
}

void run(const BenchOptions& options) {
  const c10::InferenceMode inference;
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  const Output output(options);
  if (options.errors) return run_errors(options, output);
  const Comparison comparison = options.from ? stored(*options.from, output) : measure(options, output);
  if (comparison.copy_rate) output.table(fmt::format("\n{}", roofline_table(comparison)));
  output.results(to_json(comparison));
  if (options.plot) {
    for (const std::string& file : draw_figures(comparison, *options.plot))
      output.table((*options.plot / file).string().append(1, '\n'));
  }
  if (options.ratio)
    output.table(fmt::format("ratio {:.3f}\n", *comparison.cases.front().ratio_to_sdpa(method::statistics)));
}

int fail(int code, std::string_view message) {
  write_notice("attention_statistics_bench: error: ");
  write_notice(message.substr(0, message.find('\n')));
  write_notice("\n");
  return code;
}

int run_program(int argc, const char* const* argv) {
  try {
    if (const auto options = parse_options(argc, argv)) run(*options);
    if (std::fflush(stdout) != 0) throw_run_failed("standard output: cannot be written");
    return 0;
  } catch (const InvalidArgument& error) {
    return fail(2, error.what());
  } catch (const c10::Error& error) {
    return fail(1, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return fail(1, "out of memory; use shorter --lengths or --skip-materialised");
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

}  // namespace
}  // namespace gainlens::bench

int main(int argc, char** argv) {
  const int code = gainlens::bench::run_program(argc, argv);
  std::fflush(nullptr);
  std::_Exit(code);  // skips the destructors of libtorch's globals, which take a tenth of a second
}
