#include "core/progress.h"

#include "core/console.h"
#include "core/quantity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gainlens {

namespace {

/// "1234 tokens/s", "2.5 epochs/s", "4.8 epochs/min", "1.2 epochs/h".
std::string rate_in_words(double by_second, const std::string& unit) {
  if (by_second >= 10) return fmt::format("{:.0f} {}/s", by_second, unit);
  if (by_second >= 1) return fmt::format("{:.1f} {}/s", by_second, unit);
  if (60 * by_second >= 1) return fmt::format("{:.1f} {}/min", 60 * by_second, unit);
  return fmt::format("{:.2g} {}/h", 3600 * by_second, unit);
}

}  // namespace

bool Progress::stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

Progress::Progress(std::string title, double total_cost, std::string rate_unit, Style style)
    : title_(std::move(title)),
      total_cost_(total_cost),
      rate_unit_(std::move(rate_unit)),
      style_(style),
      start_(std::chrono::steady_clock::now()) {
  if (style_ == Style::automatic) style_ = stderr_is_terminal() ? Style::terminal : Style::lines;
}

Progress::~Progress() {
  finish();
}

double Progress::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::advance(double cost, double amount, std::string_view label) {
  done_cost_ += cost;
  done_amount_ += amount;
  show(label);
}

void Progress::skip(double cost, std::string_view label) {
  if (cost <= 0) return;
  total_cost_ = std::max(total_cost_ - cost, 0.0);
  show(label);
}

void Progress::show(std::string_view label) {
  if (style_ == Style::quiet) return;
  const bool last = done_cost_ >= total_cost_ * (1 - 1e-12);
  const double now = elapsed();
  const double pause = style_ == Style::terminal ? 0.1 : 2.0;
  if (!last && now - last_shown_ < pause) return;
  last_shown_ = now;
  const double share = total_cost_ > 0 ? std::min(1.0, done_cost_ / total_cost_) : 1.0;
  const std::string left = last        ? "done in " + format_duration(now)
                           : share > 0 ? format_duration(now * (1 - share) / share) + " left"
                                       : "begins";
  const std::string rate = done_amount_ > 0 && now > 0 ? rate_in_words(done_amount_ / now, rate_unit_) + "  " : "";
  if (style_ == Style::terminal) {
    constexpr int width = 24;
    const int filled = static_cast<int>(share * width);
    write_control("\r\033[K");
    print_notice("{} [{}{}] {:3.0f}%  {}  {}{}", title_, std::string(filled, '#'), std::string(width - filled, '-'),
                 100 * share, label, rate, left);
    open_line_ = true;
  } else {
    print_notice("{}: {:3.0f}%  {}  {}{}\n", title_, 100 * share, label, rate, left);
  }
}

void Progress::finish() {
  if (open_line_) {
    print_notice("\n");
    open_line_ = false;
  }
}

}  // namespace gainlens
