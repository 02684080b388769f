#pragma once

#include "core/listener.h"

#include <chrono>
#include <string>
#include <string_view>

namespace gainlens::cli {

/// Shows on stderr what libraries tell.
/// - A notice is a line "gainlens: text", a warning a line "gainlens: warning: text".
/// - Progress of work. On a terminal: a bar with time left and rate. Elsewhere: plain lines, at most one in two
/// seconds,
///   and always the last.
class TerminalListener : public Listener {
 public:
  void notice(const Notice& notice) override;
  std::unique_ptr<WorkListener> begun(const Work& work) override;
};

/// The progress of one work. The time left is estimated from the cost, not from the number of steps, because the steps
/// of a sweep differ in length. The rate is by second, minute or hour, so that slow work does not show a 0; it is left
/// out before any amount is done. Skipped work counts neither for the share nor for the rate, so the time left stays
/// that of the work.
class TerminalProgress : public WorkListener {
 public:
  enum class Style { automatic, terminal, lines };

  explicit TerminalProgress(Work work, Style style = Style::automatic);
  ~TerminalProgress() override;  ///< ends the bar with a newline
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;

  void advanced(double cost, double amount, std::string_view label) override;
  void skipped(double cost, std::string_view label) override;

  static bool stderr_is_terminal();

 private:
  void show(std::string_view label);
  double elapsed() const;

  Work work_;
  Style style_;
  std::chrono::steady_clock::time_point start_;
  double last_shown_ = -1e9;
  double done_cost_ = 0;
  double done_amount_ = 0;
  bool open_line_ = false;
};

}  // namespace gainlens::cli
