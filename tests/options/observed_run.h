#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace gainlens::testing {

using Words = std::vector<std::string>;

/// What a call of the program printed and made, without what is only kept to know the request again.
struct ObservedRun {
  int exit_code = -1;
  std::string error;                         ///< stderr
  std::map<std::string, std::string> parts;  ///< by name: lines of stdout, files, datasets, tensors
};

/// Runs the program in a new, empty folder.
ObservedRun observe(const Words& words);

/// The names of the parts that two runs do not share, or in which they differ.
/// @param ignored  names that are not compared
std::set<std::string> differences(const ObservedRun& a, const ObservedRun& b, const std::set<std::string>& ignored);

}  // namespace gainlens::testing
