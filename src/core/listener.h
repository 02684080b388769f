#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

// What libraries tell while they work. They print nothing: the program's listener is the terminal
// (cli/terminal_listener.h), tests have another.

namespace gainlens {

/// Something that whoever started the work should know.
struct Notice {
  enum class Kind {
    note,     ///< what is done, and why
    warning,  ///< the result may not be what was wanted
  };
  Kind kind = Kind::note;
  std::string text;  ///< one line without the name of the program and without a line end; names in it are printable()
};

/// Long work of known cost.
struct Work {
  std::string title;
  double cost = 0;   ///< in any unit that is roughly proportional to time
  std::string unit;  ///< what the amounts of its steps count, e.g. "tokens"
};

/// Hears how one work goes on. The work ends when this object is destroyed.
class WorkListener {
 public:
  virtual ~WorkListener() = default;
  /// A step is done. `label` names it; `amount` counts in the unit of the work.
  virtual void advanced(double cost, double amount, std::string_view label) = 0;
  /// This cost need not be paid: it was by an earlier call, or the rest ended early.
  virtual void skipped(double cost, std::string_view label) = 0;
};

/// Hears what libraries report. Several threads may call it at the same time.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void notice(const Notice& notice) = 0;
  /// @returns  who is told how the work goes on; null: nobody
  virtual std::unique_ptr<WorkListener> begun(const Work& work) = 0;
};

/// The listener of this process. Without one nobody is told anything.
Listener* listener();

/// Makes a listener that of the process while this object exists; then the one before it is again. To be made and
/// destroyed while no other thread works.
class ScopedListener {
 public:
  explicit ScopedListener(Listener& now);
  ~ScopedListener();
  ScopedListener(const ScopedListener&) = delete;
  ScopedListener& operator=(const ScopedListener&) = delete;

 private:
  Listener* before_;
};

/// Tells the listener of this process.
void tell(const Notice& notice);

template <typename... Args>
void tell_note(fmt::format_string<Args...> format, Args&&... args) {
  tell({Notice::Kind::note, fmt::format(format, std::forward<Args>(args)...)});
}
template <typename... Args>
void tell_warning(fmt::format_string<Args...> format, Args&&... args) {
  tell({Notice::Kind::warning, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace gainlens
