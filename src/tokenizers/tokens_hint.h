#pragma once

#include "core/error.h"

#include <string_view>

namespace gainlens::tokenizers {

/// Runs `open`. If it throws InvalidArgument without naming `--tokens`, the message gets the hint to give ids with it.
template <typename Open>
auto with_tokens_hint(Open&& open) {
  try {
    return open();
  } catch (const InvalidArgument& error) {
    if (std::string_view(error.what()).find("--tokens") != std::string_view::npos) throw;
    throw_invalid("{}; give token ids made elsewhere with --tokens FILE.json", error.what());
  }
}

}  // namespace gainlens::tokenizers
