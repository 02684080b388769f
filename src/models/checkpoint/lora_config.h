#pragma once

#include "models/checkpoint/module_pattern.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::models {

/// What a module of a base is to `target_modules`.
enum class ModuleKind {
  projection,
  head,       ///< which "all-linear" does not mean
  embedding,  ///< which is no linear module
};

/// A choice of modules as PEFT reads it: a list of names, each the whole name of a module or its end after a dot; or a
/// regular expression for whole names.
class ModuleChoice {
 public:
  void add_name(std::string name) { names_.insert(std::move(name)); }
  void set_pattern(ModulePattern pattern) { patterns_ = {std::move(pattern)}; }
  bool is_pattern() const { return !patterns_.empty(); }
  bool empty() const { return names_.empty() && patterns_.empty(); }
  bool names_whole(std::string_view module) const { return names_.contains(module); }
  /// @throws InvalidArgument  as ModulePattern::matches
  bool has(std::string_view module) const;

 private:
  std::set<std::string, std::less<>> names_;
  std::vector<ModulePattern> patterns_;  // at most one
};

/// A number of all modules, and those of modules that differ.
struct ModuleNumbers {
  std::string where;  ///< the file and the key, for messages
  double common = 0;
  std::vector<std::pair<ModulePattern, double>> by_module;

  /// @throws InvalidArgument  several patterns give a module different numbers; as ModulePattern::matches
  double of(std::string_view module) const;
};

/// adapter_config.json of a LoRA adapter in the file layout of PEFT 0.21.
struct LoraConfig {
  ModuleNumbers ranks;      ///< by `rank_pattern`
  ModuleNumbers alphas;     ///< by `alpha_pattern`
  bool stabilised = false;  ///< use_rslora
  bool all_linear = false;  ///< of `target_modules`; else `targets`
  ModuleChoice targets, excluded;
  std::set<std::int64_t> layers;  ///< layers_to_transform; empty: all
  std::vector<ModulePattern> layer_patterns;

  /// Whether PEFT would compute with the factors of a module.
  /// @throws InvalidArgument  as ModulePattern::matches
  bool takes(std::string_view module, ModuleKind kind) const;
  /// alpha / rank, or alpha / sqrt(rank) with use_rslora.
  /// @param rows  rank of the stored factors
  /// @throws InvalidArgument  as ModuleNumbers::of
  double scale_of(std::string_view module, std::int64_t rows) const;
};

/// @throws InvalidArgument  a method of PEFT other than plain LoRA (DoRA, trained biases, whole modules, starts that
///     change the base); an unknown key that is set; a key of the wrong type or out of range
LoraConfig read_lora_config(const std::filesystem::path& file);

}  // namespace gainlens::models
