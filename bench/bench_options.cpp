#include "bench/bench_options.h"

#include "cli/parse_errors.h"
#include "core/check.h"
#include "core/quantity.h"
#include "core/thread_count.h"

#include <CLI/CLI.hpp>

namespace gainlens::bench {
namespace {

/// The options as the user wrote them.
struct Words {
  std::string lengths = "512,1k,2k,4k,8k,16k", head_dims, kv_heads, windows, dtype = "float32", json, from, plot, ratio,
              error_lengths;
  std::int64_t heads = 16, repeats = 0, threads = 0;
  double seconds = RunBudget{}.seconds;
  bool skip_materialised = false, errors = false, roofline = false;
};

using Windows = std::vector<std::optional<std::int64_t>>;

Windows parse_windows(std::string_view text) {
  Windows windows;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, comma - at);
    windows.push_back(word == "none" ? std::nullopt : std::optional(parse_count(word, "--window")));
    at = comma + 1;
  }
  return windows;
}

/// One of the shapes that are measured at every length.
struct Column {
  std::int64_t head_dim;
  std::int64_t kv_heads;
  std::optional<std::int64_t> window;
};

/// The columns to measure. Without a choice by the user, one thing at a time changes: three head sizes, three groups, a
/// window. With a choice, all combinations of the given values.
std::vector<Column> columns_of(const Words& words) {
  constexpr std::int64_t usual_dim = 128;
  if (words.head_dims.empty() && words.kv_heads.empty() && words.windows.empty()) {
    std::vector<Column> columns = {{usual_dim, words.heads, {}}, {64, words.heads, {}}, {256, words.heads, {}}};
    for (const std::int64_t group : {4, 8}) {
      if (words.heads % group == 0) columns.push_back({usual_dim, words.heads / group, {}});
    }
    columns.push_back({usual_dim, words.heads, 512});
    return columns;
  }
  std::vector<Column> columns;
  const std::vector<std::int64_t> dims =
      words.head_dims.empty() ? std::vector{usual_dim} : parse_counts(words.head_dims, "--head-dims");
  const std::vector<std::int64_t> kv_heads =
      words.kv_heads.empty() ? std::vector{words.heads} : parse_counts(words.kv_heads, "--kv-heads");
  for (const std::int64_t dim : dims) {
    for (const std::int64_t kv : kv_heads) {
      for (const auto& window : words.windows.empty() ? Windows{std::nullopt} : parse_windows(words.windows))
        columns.push_back({dim, kv, window});
    }
  }
  return columns;
}

std::vector<AttentionCase> cases_of(const Words& words) {
  CHECK(words.heads > 0, "--heads: {}; must be at least 1", words.heads);
  const at::ScalarType dtype = dtype_named(words.dtype);
  if (!words.ratio.empty()) return {{.length = parse_count(words.ratio, "--ratio"), .dtype = dtype}};
  std::vector<AttentionCase> cases;
  for (const Column& column : columns_of(words)) {
    for (const std::int64_t length : parse_counts(words.lengths, "--lengths"))
      cases.push_back({length, words.heads, column.kv_heads, column.head_dim, column.window, dtype});
  }
  return cases;
}

BenchOptions checked(const Words& words) {
  CHECK(words.repeats >= 0 && words.repeats <= 10000,
        "--repeats: {}; must be between 1 and 10000, or 0 for as many as fit into --seconds", words.repeats);
  check_threads(words.threads);
  CHECK(words.seconds > 0 && words.seconds <= 3600, "--seconds: {}; must be above 0 and at most 3600", words.seconds);
  BenchOptions options;
  options.cases = cases_of(words);
  for (const AttentionCase& shape : options.cases) check_case(shape);
  options.ratio = !words.ratio.empty();
  options.choice = {.composed = !options.ratio,
                    .materialised = !options.ratio && !words.skip_materialised,
                    .matrix_product = words.roofline};
  options.budget = {.repeats = words.repeats, .least = options.ratio ? 7 : 3, .seconds = words.seconds};
  options.threads = words.threads;
  options.errors = words.errors;
  if (!words.error_lengths.empty()) options.error_lengths = parse_counts(words.error_lengths, "--length");
  options.roofline = words.roofline;
  if (!words.json.empty()) options.json = words.json;
  if (!words.from.empty()) options.from = words.from;
  if (!words.plot.empty()) options.plot = words.plot;
  return options;
}

void add_options(CLI::App& app, Words& words) {
  CLI::Option* lengths =
      app.add_option("--lengths", words.lengths, "Context lengths, e.g. 512,4k")->capture_default_str();
  CLI::Option* dims = app.add_option("--head-dims", words.head_dims, "Sizes of a head");
  CLI::Option* heads = app.add_option("--heads", words.heads, "Query heads")->capture_default_str();
  CLI::Option* kv_heads = app.add_option("--kv-heads", words.kv_heads, "Key/value heads");
  CLI::Option* windows =
      app.add_option("--window", words.windows, "Number of keys that a query sees, or none; several: none,512");
  CLI::Option* dtype =
      app.add_option("--dtype", words.dtype, "float64, float32, bfloat16 or float16")->capture_default_str();
  app.add_option("--threads", words.threads, "Threads to compute with; 0: all cores")->capture_default_str();
  CLI::Option* repeats =
      app.add_option("--repeats", words.repeats, "Runs of each method; 0: as many as fit into --seconds")
          ->capture_default_str();
  CLI::Option* seconds =
      app.add_option("--seconds", words.seconds, "Seconds for the runs of one method at one shape; at least three runs")
          ->capture_default_str();
  CLI::Option* skip = app.add_flag("--skip-materialised", words.skip_materialised, "Leave out the T x T tensors");
  CLI::Option* roofline =
      app.add_flag("--roofline", words.roofline,
                   "Also measure the rates of matrix products and copies, and show each method's share of them");
  CLI::Option* ratio = app.add_option(
      "--ratio", words.ratio,
      "Measure one shape: 16 query and key/value heads of 128 dimensions, causal, at this length; the last "
      "line is 'ratio R', the time of the statistics divided by that of SDPA");
  CLI::Option* errors = app.add_flag(
      "--errors", words.errors, "Show errors against float64 instead, for each backend, dtype and adversarial case");
  app.add_option("--length", words.error_lengths,
                 "With --errors: the error of S for the last 64 queries of texts of these lengths, e.g. 1k,8k,32k,128k")
      ->needs(errors);
  CLI::Option* from =
      app.add_option("--from", words.from, "Measure nothing; show the results of a file that --json wrote");
  CLI::Option* plot = app.add_option("--plot", words.plot, "Folder for the figures (SVG, PDF, PNG)");
  app.add_option("--json", words.json, "File for the results; - for standard output, without the tables");
  for (CLI::Option* shape : {lengths, dims, heads, kv_heads, windows, skip, plot}) ratio->excludes(shape);
  for (CLI::Option* other :
       {lengths, dims, heads, kv_heads, windows, dtype, repeats, seconds, skip, roofline, ratio, plot, from})
    errors->excludes(other);
  for (CLI::Option* other : {lengths, dims, heads, kv_heads, windows, dtype, repeats, seconds, skip, roofline, ratio})
    from->excludes(other);
}

}  // namespace

std::optional<BenchOptions> parse_options(int argc, const char* const* argv) {
  CLI::App app{"Compares attention with its statistics to libtorch's SDPA, on the same tensors in one process",
               "attention_statistics_bench"};
  app.footer(
      "Without --head-dims, --kv-heads and --window, these are measured one at a time: d 128, 64 and 256; groups of 4 "
      "and 8; window 512.");
  Words words;
  add_options(app, words);
  try {
    cli::parse_command_line(app, argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return std::nullopt;
  }
  return checked(words);
}

}  // namespace gainlens::bench
