#include "cli/terminal_listener.h"

#include "core/console.h"
#include "core/quantity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gainlens::cli {

namespace {

/// "1234 tokens/s", "2.5 epochs/s", "4.8 epochs/min", "1.2 epochs/h".
std::string rate_in_words(double by_second, const std::string& unit) {
  if (by_second >= 10) return fmt::format("{:.0f} {}/s", by_second, unit);
  if (by_second >= 1) return fmt::format("{:.1f} {}/s", by_second, unit);
  if (60 * by_second >= 1) return fmt::format("{:.1f} {}/min", 60 * by_second, unit);
  return fmt::format("{:.2g} {}/h", 3600 * by_second, unit);
}

}  // namespace

void TerminalListener::notice(const Notice& notice) {
  print_notice("gainlens: {}{}\n", notice.kind == Notice::Kind::warning ? "warning: " : "", notice.text);
}

std::unique_ptr<WorkListener> TerminalListener::begun(const Work& work) {
  return std::make_unique<TerminalProgress>(work);
}

bool TerminalProgress::stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

TerminalProgress::TerminalProgress(Work work, Style style)
    : work_(std::move(work)), style_(style), start_(std::chrono::steady_clock::now()) {
  if (style_ == Style::automatic) style_ = stderr_is_terminal() ? Style::terminal : Style::lines;
}

TerminalProgress::~TerminalProgress() {
  if (open_line_) print_notice("\n");
}

double TerminalProgress::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void TerminalProgress::advanced(double cost, double amount, std::string_view label) {
  done_cost_ += cost;
  done_amount_ += amount;
  show(label);
}

void TerminalProgress::skipped(double cost, std::string_view label) {
  if (cost <= 0) return;
  work_.cost = std::max(work_.cost - cost, 0.0);
  show(label);
}

void TerminalProgress::show(std::string_view label) {
  const bool last = done_cost_ >= work_.cost * (1 - 1e-12);
  const double now = elapsed();
  const double pause = style_ == Style::terminal ? 0.1 : 2.0;
  if (!last && now - last_shown_ < pause) return;
  last_shown_ = now;
  const double share = work_.cost > 0 ? std::min(1.0, done_cost_ / work_.cost) : 1.0;
  const std::string left = last        ? "done in " + format_duration(now)
                           : share > 0 ? format_duration(now * (1 - share) / share) + " left"
                                       : "begins";
  const std::string rate = done_amount_ > 0 && now > 0 ? rate_in_words(done_amount_ / now, work_.unit) + "  " : "";
  if (style_ == Style::terminal) {
    constexpr int width = 24;
    const int filled = static_cast<int>(share * width);
    write_control("\r\033[K");
    print_notice("{} [{}{}] {:3.0f}%  {}  {}{}", work_.title, std::string(filled, '#'),
                 std::string(width - filled, '-'), 100 * share, label, rate, left);
    open_line_ = true;
  } else {
    print_notice("{}: {:3.0f}%  {}  {}{}\n", work_.title, 100 * share, label, rate, left);
  }
}

}  // namespace gainlens::cli
