#include "models/checkpoint/lora_adapter.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/nearest.h"
#include "formats/adapter_folder.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/checkpoint/layout_names.h"
#include "models/checkpoint/lora_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace gainlens::models {
namespace {

constexpr std::string_view head_field = "head";

bool is_embedding(const TensorSlot& slot) {
  return slot.parts.front().field == "embedding";
}

/// The stored projections of a model, and its embedding, by the names of their modules in PEFT.
class ModuleTable {
 public:
  ModuleTable(const Family& family, const DecoderConfig& config) {
    const TensorNames names = tensor_names(family, config);
    prefixes_ = {names.prefix};
    for (const OtherLayout& layout : family.layouts) prefixes_.push_back(layout.prefix);
    prefixes_.insert(prefixes_.end(), text_half_prefixes.begin(), text_half_prefixes.end());
    for (TensorSlot& slot : tensor_slots(config, names)) {
      constexpr std::string_view weight = ".weight";
      const bool projects = slot.parts.front().kind == WeightField::Kind::projection;
      if (slot.shape.size() != 2 || !(projects || is_embedding(slot))) continue;
      std::string_view name = slot.name;
      if (!name.ends_with(weight)) continue;
      name.remove_suffix(weight.size());
      if (name.starts_with(names.prefix)) name.remove_prefix(names.prefix.size());
      slots_.emplace(std::string(name), std::move(slot));
    }
  }
  /// Null: there is none.
  const TensorSlot* find(std::string_view module) const {
    for (const std::string_view prefix : prefixes_) {
      if (!module.starts_with(prefix)) continue;
      const auto found = slots_.find(module.substr(prefix.size()));
      if (found != slots_.end()) return &found->second;
    }
    const auto found = slots_.find(module);  // the head, or keys of a model without its head
    return found == slots_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<std::string_view> prefixes_;
  std::map<std::string, TensorSlot, std::less<>> slots_;
};

struct FactorPair {
  const formats::TensorEntry* down = nullptr;
  const formats::TensorEntry* up = nullptr;
  const formats::TensorEntry* base = nullptr;  // what PEFT repeats of the base
  bool embedding = false;
};

/// How the names of an adapter's tensors end.
struct FactorName {
  std::string_view end;
  const formats::TensorEntry* FactorPair::*member;
  bool embedding = false;
};

constexpr std::array<FactorName, 5> factor_names = {{{".lora_A.weight", &FactorPair::down},
                                                     {".lora_B.weight", &FactorPair::up},
                                                     {".lora_embedding_A", &FactorPair::down, true},
                                                     {".lora_embedding_B", &FactorPair::up, true},
                                                     {".base_layer.weight", &FactorPair::base}}};

/// The factors of a file by module: "model.layers.0.self_attn.q_proj".
std::map<std::string, FactorPair> pairs_of(const formats::TensorFile& file, const std::string& where) {
  constexpr std::string_view start = "base_model.model.";
  std::map<std::string, FactorPair> pairs;
  for (const auto& [name, entry] : file.entries()) {
    const auto* const found = std::ranges::find_if(
        factor_names, [&name = name](const FactorName& factor) { return name.ends_with(factor.end); });
    CHECK(name.starts_with(start) && found != factor_names.end() && name.size() > start.size() + found->end.size(),
          "{}: '{}' is no factor of a projection (base_model.model.MODULE.lora_A.weight or .lora_B.weight) or an "
          "embedding; merge the adapter in PEFT",
          where, printable(name, 150));
    CHECK(entry.shape.size() == 2 && stored_compute_dtype(entry.dtype),
          "{}: '{}' is {} [{}]; must be a matrix in F32, "
          "F16, BF16 or F64",
          where, printable(name, 150), formats::name_of(entry.dtype), fmt::join(entry.shape, ", "));
    FactorPair& pair = pairs[name.substr(start.size(), name.size() - start.size() - found->end.size())];
    pair.*(found->member) = &entry;
    pair.embedding = pair.embedding || found->embedding;
  }
  return pairs;
}

ModuleKind kind_of(const TensorSlot& slot) {
  return is_embedding(slot)                       ? ModuleKind::embedding
         : slot.parts.front().field == head_field ? ModuleKind::head
                                                  : ModuleKind::projection;
}

/// PEFT changes one of the two modules that share a tied tensor.
void check_untied(const DecoderConfig& config, const TensorNames& names, std::string_view module,
                  const std::string& where) {
  if (!config.tied_head) return;
  const auto is = [module](std::string_view name) {
    return module == name || module.ends_with(fmt::format(".{}", name));
  };
  CHECK(!is(names.embedding) && !is(names.head),
        "{}: has factors of '{}', and in this base the head is the embedding: a change of one of them alone is not "
        "read; give a base with a head of its own",
        where, printable(module, 150));
}

const std::vector<std::pair<std::string, std::string_view>>& target_fields() {
  static const std::vector<std::pair<std::string, std::string_view>> fields = {
      {"q", "query"},       {"k", "key"},     {"v", "value"},      {"o", "output"},
      {"gate", "mlp_gate"}, {"up", "mlp_up"}, {"down", "mlp_down"}};
  return fields;
}

/// The target that names a part; empty if none does.
std::string target_of(const SlotPart& part) {
  for (const auto& [target, field] : target_fields()) {
    if (field == part.field) return target;
  }
  return {};
}

void check_targets(const std::vector<std::string>& targets) {
  for (auto target = targets.begin(); target != targets.end(); ++target) {
    const std::vector<std::string>& known = lora_targets();
    CHECK(std::find(known.begin(), known.end(), *target) != known.end(), "--lora-targets: '{}'; must be one of {}{}",
          printable(*target, 60), fmt::join(known, ", "), did_you_mean(*target, known));
    CHECK(std::find(targets.begin(), target, *target) == target, "--lora-targets: '{}' is given twice", *target);
  }
}

}  // namespace

LoraAdapter open_lora_adapter(const std::filesystem::path& folder, const Family& family, const DecoderConfig& config) {
  LoraAdapter adapter;
  adapter.folder = folder;
  adapter.files = {folder / formats::adapter_config_name, folder / formats::adapter_weights_name};
  const LoraConfig asked = read_lora_config(adapter.files[0]);
  std::error_code error;
  CHECK(std::filesystem::exists(adapter.files[1], error),
        "{}: no {}; gainlens reads adapters in safetensors (PEFT writes them with save_pretrained)",
        printable(folder.string()), formats::adapter_weights_name);
  const auto file = formats::TensorFile::open(adapter.files[1]);
  const std::string where = printable(adapter.files[1].string());
  const ModuleTable modules(family, config);
  for (const auto& [module, pair] : pairs_of(file, where)) {
    const std::string name = printable(module, 150);
    CHECK((pair.down != nullptr) == (pair.up != nullptr), "{}: '{}' has lora_{} without lora_{}", where, name,
          pair.up == nullptr ? "A" : "B", pair.up == nullptr ? "B" : "A");
    check_untied(config, tensor_names(family, config), module, where);
    const TensorSlot* slot = modules.find(module);
    CHECK(slot != nullptr && (pair.down == nullptr || pair.embedding == is_embedding(*slot)),
          "{}: '{}' is no {} of the base, {} (or one that is not computed); the adapter is of another model", where,
          name, pair.embedding ? "embedding" : "projection", family.title);
    if (pair.base != nullptr) adapter.repeated.push_back({slot->name, *pair.base});
    if (pair.down == nullptr) continue;
    CHECK(asked.takes(module, kind_of(*slot)),
          "{}: has factors of '{}', which 'target_modules' of {} does not name (or another key leaves out)", where,
          name, formats::adapter_config_name);
    const std::vector<std::int64_t>&down = pair.down->shape, &up = pair.up->shape;
    const std::int64_t inputs = pair.embedding ? outputs_of(*slot) : inputs_of(*slot);
    const std::int64_t outputs = pair.embedding ? inputs_of(*slot) : outputs_of(*slot);
    CHECK(down[1] == inputs && up[0] == outputs && down[0] == up[1],
          "{}: '{}' has A [{}] and B [{}], and the base has {} outputs of {} inputs there: the adapter is of another "
          "model",
          where, name, fmt::join(down, ", "), fmt::join(up, ", "), outputs, inputs);
    CHECK(static_cast<double>(down[0]) == asked.ranks.of(module), "{}: '{}' is of rank {}, and {} says {}", where, name,
          down[0], formats::adapter_config_name, asked.ranks.of(module));
    adapter.factors.push_back({*slot, *pair.down, *pair.up, asked.scale_of(module, down[0]), pair.embedding});
  }
  CHECK(!adapter.factors.empty(), "{}: holds no factors", where);
  std::set<std::string_view> changed;
  for (const LoraFactors& factors : adapter.factors)
    CHECK(changed.insert(factors.slot.name).second, "{}: two names mean '{}'", where, factors.slot.name);
  return adapter;
}

const std::vector<std::string>& lora_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const auto& target : target_fields()) made.push_back(target.first);
    return made;
  }();
  return names;
}

std::vector<LoraModule> lora_modules(const DecoderConfig& config, const std::vector<std::string>& targets) {
  check_targets(targets);
  CHECK(!config.has_latent(),
        "--lora-rank: this model has latent attention, whose projections q, k and v do not name; adapters are not "
        "trained there");
  const TensorNames names = tensor_names(family_named(config.family, "model"), config);
  const auto asked = [&](const std::string& target) {
    return targets.empty() || std::find(targets.begin(), targets.end(), target) != targets.end();
  };
  std::set<std::string> found;
  std::vector<LoraModule> modules;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string at = std::string(names.prefix) + fmt::format(fmt::runtime(names.layer), layer);
    for (TensorSlot& slot : layer_slots(config, names, layer)) {
      std::vector<std::string> wanted, unwanted;
      for (const SlotPart& part : slot.parts) {
        const std::string target = target_of(part);
        if (!target.empty()) (asked(target) ? wanted : unwanted).push_back(target);
      }
      if (wanted.empty()) continue;
      std::string name = slot.name.substr(at.size(), slot.name.size() - at.size() - std::string_view(".weight").size());
      CHECK(unwanted.empty(),
            "--lora-targets: {} and {} are one projection in this model, '{}', which has one adapter; give all of them "
            "or none",
            fmt::join(wanted, ", "), fmt::join(unwanted, ", "), name);
      found.insert(wanted.begin(), wanted.end());
      modules.push_back({std::move(slot), std::move(name)});
    }
  }
  for (const std::string& target : targets)
    CHECK(found.contains(target), "--lora-targets: this model has no '{}'; it has {}", target, fmt::join(found, ", "));
  return modules;
}

std::int64_t inputs_of(const TensorSlot& slot) {
  return slot.shape[slot.transposed ? 0 : 1];
}

std::int64_t outputs_of(const TensorSlot& slot) {
  return slot.shape[slot.transposed ? 1 : 0];
}

std::int64_t lora_parameter_count(const std::vector<LoraModule>& modules, std::int64_t rank) {
  const auto smaller_side = [](const LoraModule& module) {
    return std::min(inputs_of(module.slot), outputs_of(module.slot));
  };
  const auto smallest = std::min_element(
      modules.begin(), modules.end(), [&](const auto& a, const auto& b) { return smaller_side(a) < smaller_side(b); });
  ASSERT(smallest != modules.end(), "an adapter of no projection");
  CHECK(rank >= 1 && rank <= smaller_side(*smallest),
        "--lora-rank: {}; must be 1 to {}, as '{}' has {} outputs of {} inputs", rank, smaller_side(*smallest),
        smallest->name, outputs_of(smallest->slot), inputs_of(smallest->slot));
  std::int64_t total = 0;
  for (const LoraModule& module : modules) {
    const std::int64_t sides = checked_add(inputs_of(module.slot), outputs_of(module.slot), module.name);
    total = checked_add(total, checked_mul(rank, sides, module.name), module.name);
  }
  return total;
}

TensorSlot row_slot(const TensorSlot& slot, std::int64_t columns) {
  TensorSlot rows = slot;
  rows.transposed = false;
  rows.shape = {outputs_of(slot), columns};
  for (SlotPart& part : rows.parts) part.shape = {part.shape.front(), columns};
  return rows;
}

}  // namespace gainlens::models
