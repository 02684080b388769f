#pragma once

#include "support/program.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::testing {

/// Item i of a user of tiny_histories().
inline int tiny_item(int user, int i) {
  return (user * 7 + i * i * 5) % 66 + 1;
}

/// 60 users of 66 items, a line each. User u has `shortest` + u mod `lengths` items.
inline std::string tiny_histories(int shortest, int lengths) {
  std::string text;
  for (int user = 0; user < 60; ++user) {
    text += "user" + std::to_string(user);
    for (int i = 0; i < shortest + user % lengths; ++i) text += " " + std::to_string(tiny_item(user, i));
    text += "\n";
  }
  return text;
}

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

/// Makes this call, without progress.
inline void train_tiny(const std::string& data, const std::string& out, int epochs,
                       const std::vector<std::string>& more) {
  std::vector<std::string> words = tiny_training(data, out, epochs, more);
  words.emplace_back("--quiet");
  const ProgramResult result = run_gainlens(words);
  ASSERT_EQ(result.exit_code, 0) << result.error;
}

}  // namespace gainlens::testing
