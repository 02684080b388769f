#include "support/printed_text.h"

#include <cmath>
#include <regex>
#include <sstream>
#include <vector>

namespace gainlens::testing {
namespace {

/// One unit of the last printed digit: 0.01 for "1.25", 1e-5 for "1.3e-04". 0 for a whole number, which must be the
/// same.
double last_place(const std::string& number) {
  const std::size_t exponent = number.find('e');
  const std::string mantissa = number.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  if (point == std::string::npos) return 0;
  const auto decimals = static_cast<double>(mantissa.size() - point - 1);
  const double scale = exponent == std::string::npos ? 0 : std::stod(number.substr(exponent + 1));
  return std::pow(10, scale - decimals);
}

bool same_number(const std::string& expected, const std::string& found) {
  if (expected == found) return true;
  const double place = std::max(last_place(expected), last_place(found));
  return place > 0 && std::abs(std::stod(expected) - std::stod(found)) <= 1.001 * place;
}

bool same_line(std::string expected, std::string found) {
  static const std::regex available(R"(; [\d.]+ [KMGTPE]?i?B available)");
  expected = std::regex_replace(expected, available, "; some available");
  found = std::regex_replace(found, available, "; some available");
  static const std::regex times(R"(about [\d.]+ (s|min|h) for each sequence, and [\d.]+ (s|min|h) for its)");
  expected = std::regex_replace(expected, times, "some time for each sequence, and for its");
  found = std::regex_replace(found, times, "some time for each sequence, and for its");
  static const std::regex seconds(R"([\d.]+ (s|min|h) for (each sequence|its likelihood))");
  expected = std::regex_replace(expected, seconds, "some time for $2");
  found = std::regex_replace(found, seconds, "some time for $2");
  static const std::regex number(R"([-+]?\d+(\.\d+)?(e[-+]\d+)?)");
  std::sregex_iterator a(expected.begin(), expected.end(), number), b(found.begin(), found.end(), number);
  for (; a != std::sregex_iterator() && b != std::sregex_iterator(); ++a, ++b) {
    if (a->prefix() != b->prefix() || !same_number(a->str(), b->str())) return false;
  }
  if (a != std::sregex_iterator() || b != std::sregex_iterator()) return false;
  return std::regex_replace(expected, number, "#") == std::regex_replace(found, number, "#");
}

std::vector<std::string> lines_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string difference_of_printed(std::string_view expected, std::string_view found) {
  const auto a = lines_of(expected), b = lines_of(found);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string want = i < a.size() ? a[i] : "(end)", got = i < b.size() ? b[i] : "(end)";
    if (!same_line(want, got)) return "line " + std::to_string(i + 1) + "\n  printed: " + want + "\n  found:   " + got;
  }
  return "";
}

}  // namespace gainlens::testing
