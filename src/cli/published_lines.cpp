#include "cli/published_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace gainlens::cli {
namespace {

std::string figure(const analyses::PublishedResult::Figure& figure) {
  return figure.deviation ? fmt::format("{:.4f} ({:.4f})", figure.mean, *figure.deviation)
                          : fmt::format("{:.4f}", figure.mean);
}

}  // namespace

std::string published_lines(const std::vector<analyses::PublishedResult>& results) {
  if (results.empty()) return {};
  std::size_t widest = 0;
  for (const analyses::PublishedResult& result : results) widest = std::max(widest, result.model.size());
  std::string lines =
      fmt::format("published for these data ({}), with this protocol: hr@10, ndcg@10\n", results.front().data_set);
  for (const analyses::PublishedResult& result : results) {
    lines +=
        fmt::format("  {:<{}}  {:<15}  {:<15}  {}{}{}\n", result.model, widest, figure(result.hit), figure(result.gain),
                    result.source, result.seeds ? fmt::format(", {} seeds", *result.seeds) : "",
                    result.split.empty() ? "; order of ties not known" : "");
  }
  return lines;
}

}  // namespace gainlens::cli
