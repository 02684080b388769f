#include "core/listener.h"

#include <atomic>

namespace gainlens {
namespace {

std::atomic<Listener*> current = nullptr;

}  // namespace

Listener* listener() {
  return current;
}

ScopedListener::ScopedListener(Listener& now) : before_(current.exchange(&now)) {}

ScopedListener::~ScopedListener() {
  current = before_;
}

void tell(const Notice& notice) {
  if (Listener* const told = listener()) told->notice(notice);
}

}  // namespace gainlens
