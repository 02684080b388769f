#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace gainlens::models {

/// A regular expression for names of modules, as the files of adapters write them for Python's `re`. Such files are
/// untrusted: the work of a match is limited.
class ModulePattern {
 public:
  /// @param where  names the file and the key in messages
  /// @throws InvalidArgument  PCRE2 refuses it, or it holds a construct that Python reads in another way
  ModulePattern(std::string_view pattern, std::string where);

  /// Whether the expression matches the whole name (re.fullmatch).
  /// @throws InvalidArgument  the match takes too many steps
  bool matches(std::string_view name) const;
  /// The named group `idx` of a match at the start of the name (re.match); empty: there is no match.
  /// @throws InvalidArgument  as matches()
  std::string index_in(std::string_view name) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace gainlens::models
