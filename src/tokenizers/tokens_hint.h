#pragma once

#include "core/error.h"

#include <string_view>

namespace gainlens::tokenizers {

/// Runs `open`; a message of its InvalidArgument that does not name `--tokens` gets it as the way round.
template <typename Open>
auto with_tokens_hint(Open&& open) {
  try {
    return open();
  } catch (const InvalidArgument& error) {
    if (std::string_view(error.what()).find("--tokens") != std::string_view::npos) throw;
    throw_invalid("{}; the way round is --tokens FILE.json with ids made elsewhere", error.what());
  }
}

}  // namespace gainlens::tokenizers
