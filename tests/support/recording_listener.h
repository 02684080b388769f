#pragma once

#include "core/listener.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gainlens::testing {

/// Keeps the notices that libraries tell while it exists, as the lines of a terminal without the program's name.
class RecordingListener : public Listener {
 public:
  void notice(const Notice& notice) override {
    const std::lock_guard lock(mutex_);
    notices_.push_back((notice.kind == Notice::Kind::warning ? "warning: " : "") + notice.text);
  }
  std::unique_ptr<WorkListener> begun(const Work& /*work*/) override { return nullptr; }

  const std::vector<std::string>& notices() const { return notices_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> notices_;
  ScopedListener told_{*this};
};

}  // namespace gainlens::testing
