#include "bench/comparison_table.h"

#include "core/error.h"
#include "core/quantity.h"

namespace gainlens::bench {
namespace {

std::string shape_line(const AttentionCase& shape) {
  const std::string mask = shape.window ? fmt::format("window {}", *shape.window) : "causal";
  return fmt::format("T {}, {} query heads, {} key/value heads, d {}, {}, {}\n", format_count(shape.length),
                     shape.heads, shape.kv_heads, shape.head_dim, mask, dtype_name(shape.dtype));
}

std::string method_line(const CaseResult& result, const MethodResult& method) {
  const std::string label = method_label(method.name);
  if (!method.times) return fmt::format("  {:<16}{:>10}  {}\n", label, "-", method.reason);
  const RunTimes& times = *method.times;
  const bool attention = method.name != method::matrix_product;
  const std::optional<double> ratio = attention ? result.ratio_to_sdpa(method.name) : std::nullopt;
  return fmt::format("  {:<16}{:>10.4f}{:>6.1f}%{:>6}{:>10.1f}{:>9}{:>11}\n", label, times.median,
                     50 * (times.high - times.low) / times.median, times.runs, 1e-9 * method.operations_per_second(),
                     ratio ? fmt::format("{:.3f}", *ratio) : "",
                     attention ? format_bytes(static_cast<std::uint64_t>(method.peak_bytes)) : "");
}

/// Share of the rate of the matrix product, in per cent.
std::string share(const CaseResult& result, std::string_view name) {
  const MethodResult *method = result.measured(name), *product = result.measured(method::matrix_product);
  if (method == nullptr) return "-";
  return fmt::format("{:.0f}%", 100 * method->operations_per_second() / product->operations_per_second());
}

std::string roofline_line(const CaseResult& result, double copy_rate) {
  const AttentionCase& shape = result.shape;
  const MethodResult *ours = result.measured(method::statistics), *product = result.measured(method::matrix_product);
  const double traffic_seconds = min_traffic(shape) / copy_rate;
  return fmt::format("{:>6}{:>5}{:>7}{:>8}{:>10.1f}{:>8}{:>12}{:>12}{:>10.0f}{:>9.1f}%\n", format_count(shape.length),
                     shape.head_dim, shape.group(), shape.window ? fmt::format("{}", *shape.window) : "-",
                     1e-9 * product->operations_per_second(), share(result, method::sdpa),
                     share(result, method::statistics), share(result, method::all_fields),
                     ours->operations / min_traffic(shape), 100 * traffic_seconds / ours->times->median);
}

}  // namespace

std::string machine_line(const Machine& machine) {
  return fmt::format("{}, {}, {} thread{}, libtorch {}\n", machine.processor, machine.instructions, machine.threads,
                     machine.threads == 1 ? "" : "s", machine.libtorch);
}

std::string table_notes() {
  return "seconds: median of runs taken in turn; +-: half the distance between their quartiles; x SDPA: ratio of "
         "medians\n"
         "GFLOP/s: 2 d operations for each visible query-key pair and product; attention has two products (Q K^T, P "
         "V), "
         "attention with\n"
         "statistics three (also P V^2); other operations, for example on hidden pairs, are not counted\n"
         "peak: bytes of libtorch's allocator beyond the inputs. With a window, SDPA gets a T × T mask that was made "
         "before: it has no\n"
         "option for a window\n"
         "statistics: output, n_eff, entropy, bos_mass, S, lambda_obs, K. T × T tensors: the same, head by head\n";
}

std::string case_table(const CaseResult& result) {
  std::string text = shape_line(result.shape);
  text += fmt::format("  {:<16}{:>10}{:>7}{:>6}{:>10}{:>9}{:>11}\n", "method", "seconds", "+-", "runs", "GFLOP/s",
                      "x SDPA", "peak");
  for (const MethodResult& method : result.methods) text += method_line(result, method);
  return text;
}

std::string roofline_table(const Comparison& comparison) {
  if (!comparison.copy_rate) return "";
  std::string text = fmt::format(
      "roofline: shares of the rate of a 2048 x 2048 matrix product in the same rounds; a copy moves {:.1f} GB/s (read "
      "and written)\n",
      1e-9 * *comparison.copy_rate);
  text += fmt::format("{:>6}{:>5}{:>7}{:>8}{:>10}{:>8}{:>12}{:>12}{:>10}{:>10}\n", "T", "d", "group", "window",
                      "GFLOP/s", "SDPA", "statistics", "all fields", "flop/byte", "traffic");
  for (const CaseResult& result : comparison.cases) {
    if (result.measured(method::matrix_product) != nullptr) text += roofline_line(result, *comparison.copy_rate);
  }
  return text +
         "flop/byte: operations of statistics for each byte of query, key, value and output; traffic: share of its "
         "time "
         "that moving these bytes once would take\n";
}

}  // namespace gainlens::bench
