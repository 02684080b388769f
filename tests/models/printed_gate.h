#pragma once

#include "models/decoder/decoder_config.h"

#include <ostream>

namespace gainlens::models {

/// Prints a kind of gate by its name in test names and messages. Every test that prints one includes this header.
inline void PrintTo(Gate gate, std::ostream* out) {
  *out << (gate == Gate::none ? "none" : gate == Gate::headwise ? "headwise" : "elementwise");
}

}  // namespace gainlens::models
