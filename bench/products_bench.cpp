// Compares the kernels that multiply activations with a weight. Options: products_bench --help

#include "bench/peak_rate.h"
#include "bench/timing.h"
#include "core/check.h"
#include "core/console.h"
#include "core/error.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace gainlens::bench {
namespace {

using kernels::PackedWeight;
using kernels::ProductKernel;

struct Options {
  std::int64_t rows = 4096;
  std::int64_t repeats = 7;
  std::int64_t threads = 0;
  bool likelihood = false;
  bool training = false;
};

struct Shape {
  const char* model;
  const char* layer;
  std::int64_t inputs, outputs;
};

constexpr Shape shapes[] = {{"Gemma 3 270M", "query", 640, 1024},    {"Gemma 3 270M", "key", 640, 256},
                            {"Gemma 3 270M", "output", 1024, 640},   {"Gemma 3 270M", "MLP up", 640, 2048},
                            {"Gemma 3 270M", "MLP down", 2048, 640}, {"Llama 3.2 1B", "query", 2048, 2048},
                            {"Llama 3.2 1B", "key", 2048, 512},      {"Llama 3.2 1B", "MLP up", 2048, 8192},
                            {"Llama 3.2 1B", "MLP down", 8192, 2048}};

constexpr std::pair<const char*, at::ScalarType> types[] = {
    {"float32", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}};

constexpr ProductKernel all_kernels[] = {ProductKernel::libtorch, ProductKernel::strips, ProductKernel::widened_strips,
                                         ProductKernel::pair_strips, ProductKernel::brgemm};

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// The rate of every kernel that takes the type: "libtorch 241 (72%)".
void compare(const std::string& name, at::ScalarType type, double operations, double peak, const Options& options,
             const std::function<std::function<void()>(ProductKernel)>& method) {
  std::vector<ProductKernel> kernels;
  std::vector<std::function<void()>> methods;
  for (const ProductKernel kernel : all_kernels) {
    if (!kernels::runs_here(kernel, type)) continue;
    kernels.push_back(kernel);
    methods.push_back(method(kernel));
    methods.back()();  // the first run builds what is kept
  }
  const std::vector<RunTimes> times = interleaved_times(methods, {.repeats = options.repeats});
  std::string line = fmt::format("| {} | {} |", name, c10::toString(type));
  for (const ProductKernel kernel : all_kernels) {
    const auto found = std::find(kernels.begin(), kernels.end(), kernel);
    if (found == kernels.end()) {
      line += " - |";
      continue;
    }
    const double rate = operations / times[static_cast<std::size_t>(found - kernels.begin())].median;
    line += fmt::format(" {:.0f} ({:.0f}%){} |", rate / 1e9, 100 * rate / peak,
                        kernel == kernels::product_kernel(type) ? " *" : "");
  }
  print(line + "\n");
}

void run(const Options& options) {
  CHECK(options.rows >= 1 && options.repeats >= 1, "--rows and --repeats must be at least 1");
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  const c10::InferenceMode inference;
  at::manual_seed(0);
  const double peak = measured_peak_rate();
  print(fmt::format(
      "{}\n{} threads, {} rows. Peak of float32 in registers: {:.0f} GFLOP/s. Each cell: GFLOP/s (share "
      "of that peak); * is what gainlens uses here\n\n"
      "| layer, inputs x outputs | type | libtorch | strips | widened strips | strips of pairs | oneDNN brgemm |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n",
      kernels::describe_processor(), at::get_num_threads(), options.rows, peak / 1e9));
  for (const auto& [type_name, type] : types) {
    for (const Shape& shape : shapes) {
      const at::Tensor input = at::randn({options.rows, shape.inputs}).to(type);
      const at::Tensor weight = at::randn({shape.outputs, shape.inputs}).to(type);
      const at::Tensor output = at::empty({options.rows, shape.outputs}, input.options());
      compare(fmt::format("{} {}, {} x {}", shape.model, shape.layer, shape.inputs, shape.outputs), type,
              2.0 * static_cast<double>(options.rows * shape.inputs * shape.outputs), peak, options,
              [&](ProductKernel kernel) -> std::function<void()> {
                const PackedWeight packed(weight, kernel);
                return [=] { kernels::linear(input, packed, {.output = output}); };
              });
    }
    if (!options.likelihood) continue;
    constexpr std::int64_t inputs = 640, vocabulary = 262144;
    const std::int64_t rows = std::min<std::int64_t>(options.rows, 1024);
    const at::Tensor input = at::randn({rows, inputs}).to(type);
    const at::Tensor head = (at::randn({vocabulary, inputs}) * 0.05).to(type);
    const at::Tensor targets = at::randint(vocabulary, {rows}, at::kLong);
    compare("Gemma 3 270M head and log-softmax, 640 x 262144", type,
            2.0 * static_cast<double>(rows * inputs * vocabulary), peak, options,
            [&](ProductKernel kernel) -> std::function<void()> {
              const PackedWeight packed(head, kernel);
              return [=] { kernels::target_losses(input, packed, targets); };
            });
  }
}

/// The layers of the decoder in data/demo, and two larger ones.
constexpr Shape trained_shapes[] = {{"demo", "query", 96, 96},
                                    {"demo", "key", 96, 48},
                                    {"demo", "MLP up", 96, 256},
                                    {"demo", "MLP down", 256, 96},
                                    {"demo", "head", 96, 2048},
                                    {"Gemma 3 270M", "MLP up", 640, 2048},
                                    {"Llama 3.2 1B", "query", 2048, 2048}};

void run_training(const Options& options) {
  CHECK(options.rows >= 1 && options.repeats >= 1, "--rows and --repeats must be at least 1");
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  const c10::InferenceMode inference;
  at::manual_seed(0);
  const double peak = measured_peak_rate();
  print(
      fmt::format("{}\n{} threads, {} rows, float32. Peak in registers: {:.0f} GFLOP/s. Each cell: GFLOP/s (share of "
                  "that peak)\n\n| layer, inputs x outputs | product | libtorch | strips |\n"
                  "| --- | --- | --- | --- |\n",
                  kernels::describe_processor(), at::get_num_threads(), options.rows, peak / 1e9));
  for (const Shape& shape : trained_shapes) {
    const at::Tensor input = at::randn({options.rows, shape.inputs}), weight = at::randn({shape.outputs, shape.inputs});
    const at::Tensor upstream = at::randn({options.rows, shape.outputs});
    struct Product {
      const char* name;
      at::Tensor left, right;
    };
    for (const Product& product :
         {Product{"output", input, weight.t()}, Product{"gradient of the input", upstream, weight},
          Product{"gradient of the weight", upstream.t(), input}}) {
      at::Tensor output = at::empty({product.left.size(0), product.right.size(1)});
      const std::vector<std::function<void()>> methods = {
          [&] { kernels::matrix_product(product.left, product.right, {.output = output}, ProductKernel::libtorch); },
          [&] { kernels::matrix_product(product.left, product.right, {.output = output}, ProductKernel::strips); }};
      for (const auto& method : methods) method();
      const std::vector<RunTimes> times = interleaved_times(methods, {.repeats = options.repeats});
      const double operations = 2.0 * static_cast<double>(options.rows * shape.inputs * shape.outputs);
      const auto rate = [&](std::size_t which) {
        const double found = operations / times[which].median;
        return fmt::format("{:.0f} ({:.0f}%)", found / 1e9, 100 * found / peak);
      };
      print(fmt::format("| {} {}, {} x {} | {} | {} | {} |\n", shape.model, shape.layer, shape.inputs, shape.outputs,
                        product.name, rate(0), rate(1)));
    }
  }
}

int main_of(int argc, char** argv) {
  CLI::App app{"Compares the kernels that multiply activations with weights"};
  Options options;
  app.add_option("--rows", options.rows, "Rows of activations: tokens")->capture_default_str();
  app.add_option("--repeats", options.repeats, "Runs of each kernel, in turn")->capture_default_str();
  app.add_option("--threads", options.threads, "0: all cores")->capture_default_str();
  app.add_flag("--likelihood", options.likelihood, "Also the output head with its log-softmax");
  app.add_flag("--training", options.training, "The products of training instead: output and both gradients");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.training ? run_training(options) : run(options);
  return 0;
}

}  // namespace
}  // namespace gainlens::bench

int main(int argc, char** argv) {
  try {
    return gainlens::bench::main_of(argc, argv);
  } catch (const gainlens::InvalidArgument& error) {
    gainlens::print_notice("products_bench: error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    gainlens::print_notice("products_bench: error: {}\n", error.what());
    return 1;
  }
}
