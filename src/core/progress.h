#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gainlens {

/// Progress of long work on stderr. On a terminal: a bar with time left and rate. Elsewhere: plain lines, at most one
/// in two seconds, and always the last. Quiet: nothing. The time left is estimated from `cost`, not from the number of
/// steps, because the steps of a sweep differ in length. The rate is by second, minute or hour, so that slow work does
/// not show a 0; it is left out before any amount is done.
class Progress {
 public:
  enum class Style { automatic, terminal, lines, quiet };

  /// @param total_cost  in any unit that is roughly proportional to time
  /// @param rate_unit   what `amount` counts, e.g. "tokens": shown as "1234 tokens/s", or "4.8 epochs/min"
  Progress(std::string title, double total_cost, std::string rate_unit, Style style = Style::automatic);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Reports that one step is done. `label` names the step; `amount` counts for the rate.
  void advance(double cost, double amount, std::string_view label);
  /// Takes work out of the total that need not be done: it was done by an earlier call, or the rest ended early. It
  /// counts neither for the share nor for the rate, so the time left stays that of the work.
  void skip(double cost, std::string_view label);
  /// Ends the bar with a newline; called by the destructor too.
  void finish();

  static bool stderr_is_terminal();

 private:
  void show(std::string_view label);
  double elapsed() const;

  std::string title_;
  double total_cost_;
  std::string rate_unit_;
  Style style_;
  std::chrono::steady_clock::time_point start_;
  double last_shown_ = -1e9;
  double done_cost_ = 0;
  double done_amount_ = 0;
  bool open_line_ = false;
};

}  // namespace gainlens
