// Compares the two forms of the gated delta rule: errors and times. Options: delta_rule_bench --help

#include "core/check.h"
#include "core/console.h"
#include "core/error.h"
#include "core/quantity.h"
#include "kernels/delta_inputs.h"
#include "kernels/linear/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace gainlens::bench {
namespace {

using kernels::DeltaInputs;
using kernels::testing::Decay;

struct Options {
  std::string lengths = "1k,4k,32k";
  std::int64_t key_heads = 8;
  std::int64_t value_heads = 16;
  std::int64_t head_dim = 128;
  std::int64_t threads = 0;
};

constexpr std::pair<const char*, Decay> decays[] = {
    {"mild", Decay::mild}, {"none", Decay::none}, {"mixed", Decay::mixed}};
constexpr std::pair<const char*, at::ScalarType> types[] = {{"float64", at::kDouble}, {"float32", at::kFloat}};

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

using Rule = at::Tensor (*)(const DeltaInputs&, at::Tensor&);

/// What one form computes, and the processor seconds of all threads. These are the same on a busy machine.
struct Measured {
  at::Tensor output;
  double seconds;
};

Measured measured(Rule rule, const DeltaInputs& inputs) {
  at::Tensor state;
  const std::clock_t begin = std::clock();
  at::Tensor output = rule(inputs, state);
  return {std::move(output), static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC};
}

/// One line of the table for each type.
void compare(const Options& options, std::int64_t length, const char* name, Decay decay) {
  const DeltaInputs inputs = kernels::testing::random_delta_inputs(length, decay, at::kDouble,
                                                                   {.batch = 1,
                                                                    .key_heads = options.key_heads,
                                                                    .value_heads = options.value_heads,
                                                                    .key_dim = options.head_dim,
                                                                    .value_dim = options.head_dim});
  at::Tensor exact;
  for (const auto& [type_name, type] : types) {
    const DeltaInputs cast = kernels::testing::cast(inputs, type);
    const Measured recurrent = measured(kernels::gated_delta_rule_recurrent, cast);
    const Measured chunked = measured(kernels::gated_delta_rule_chunked, cast);
    const bool oracle = type == at::kDouble;
    if (oracle) exact = recurrent.output;
    const auto error = [&](const at::Tensor& output) { return kernels::testing::largest_error(output, exact); };
    print(fmt::format("| {} | {} | {} | {} | {:.1e} | {:.3g} | {:.3g} | {:.1f} |\n", format_count(length), name,
                      type_name, oracle ? "-" : fmt::format("{:.1e}", error(recurrent.output)), error(chunked.output),
                      recurrent.seconds, chunked.seconds, recurrent.seconds / chunked.seconds));
  }
}

void run(const Options& options) {
  CHECK(options.key_heads >= 1 && options.value_heads >= 1 && options.head_dim >= 1,
        "--key-heads, --value-heads and --head-dim must be at least 1");
  const std::vector<std::int64_t> lengths = parse_counts(options.lengths, "--lengths");
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  const c10::InferenceMode inference;
  print(
      fmt::format("{}\n{} threads. {} value heads over {} key heads, states of {} x {}. Error: largest difference to "
                  "the recurrent form in float64, over the largest output. Seconds: processor time\n\n"
                  "| T | decay | type | recurrent: error | chunked: error | recurrent, s | chunked, s | ratio |\n"
                  "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
                  kernels::describe_processor(), at::get_num_threads(), options.value_heads, options.key_heads,
                  options.head_dim, options.head_dim));
  for (const std::int64_t length : lengths) {
    for (const auto& [name, decay] : decays) compare(options, length, name, decay);
  }
}

int main_of(int argc, char** argv) {
  CLI::App app{"Compares the two forms of the gated delta rule: token by token, and in chunks"};
  Options options;
  app.add_option("--lengths", options.lengths, "Positions")->capture_default_str();
  app.add_option("--key-heads", options.key_heads, "Heads of queries and keys")->capture_default_str();
  app.add_option("--value-heads", options.value_heads, "A multiple of --key-heads")->capture_default_str();
  app.add_option("--head-dim", options.head_dim, "Of keys and of values")->capture_default_str();
  app.add_option("--threads", options.threads, "0: all cores")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  run(options);
  return 0;
}

}  // namespace
}  // namespace gainlens::bench

int main(int argc, char** argv) {
  try {
    return gainlens::bench::main_of(argc, argv);
  } catch (const gainlens::InvalidArgument& error) {
    gainlens::print_notice("delta_rule_bench: error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    gainlens::print_notice("delta_rule_bench: error: {}\n", error.what());
    return 1;
  }
}
