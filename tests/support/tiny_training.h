#pragma once

#include <string>
#include <vector>

namespace gainlens::testing {

/// The words of a call that trains recommenders of width 8 with one thread.
/// @param more  further options
inline std::vector<std::string> tiny_training(const std::string& data, const std::string& out, int epochs,
                                              const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      "train",   "recommend", "--data",        data, "--out",   out,  "--epochs",  std::to_string(epochs),
      "--width", "8",         "--inner-width", "16", "--batch", "16", "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace gainlens::testing
