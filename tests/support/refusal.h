#pragma once

#include "core/error.h"

#include <string>

namespace gainlens::testing {

/// The message of the InvalidArgument that `action` throws; "accepted" if it throws none.
template <typename Action>
std::string refusal_of(Action&& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace gainlens::testing
