#include "models/checkpoint.h"

#include "core/error.h"
#include "core/nearest.h"
#include "formats/mapped_file.h"
#include "formats/tensor_file.h"
#include "models/config_reader.h"
#include "models/dtype.h"
#include "models/family.h"
#include "models/gate_rows.h"
#include "models/inert_keys.h"
#include "models/model_size.h"
#include "models/tensor_slots.h"
#include "models/tensor_values.h"

#include <fmt/ranges.h>

#include <array>
#include <set>
#include <string>

namespace gainlens::models {
namespace {

using Entries = std::map<std::string, formats::TensorEntry, std::less<>>;

constexpr std::uintmax_t max_config_bytes = 16u << 20;
constexpr std::int64_t max_parameters = std::int64_t{1} << 48;  // a petabyte of float32: each size is possible, all of them are not
constexpr std::size_t max_listed = 10;                          // faults spelt out in one message; the others are counted
constexpr std::size_t max_candidates = 2000;                    // names compared for a nearest match

/// Tables that can be computed from config.json, kept by old checkpoints.
constexpr std::array inert_tensor_suffixes = {".rotary_emb.inv_freq", ".rotary_emb.cos_cached", ".rotary_emb.sin_cached"};

struct FamilyConfig {
  const Family* family;
  DecoderConfig config;
};

FamilyConfig parse_config(const Json& document, const std::string& where) {
  ConfigReader reader(document, where);
  const Family& family = family_named(reader.text("model_type"), where);
  DecoderConfig config = family.parse(reader);
  config.family = family.name;
  std::vector<std::string_view> inert(inert_keys().begin(), inert_keys().end());
  inert.insert(inert.end(), family.inert_keys.begin(), family.inert_keys.end());
  reader.refuse_unread(inert);
  const std::int64_t parameters = parameter_count(config);
  CHECK(parameters <= max_parameters, "{}: the sizes describe {} parameters; at most {} are supported", where, parameters, max_parameters);
  return {&family, std::move(config)};
}

FamilyConfig read_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  return parse_config(read_json_file(file, max_config_bytes), printable(file.string()));
}

bool is_inert(std::string_view name) {
  return std::any_of(inert_tensor_suffixes.begin(), inert_tensor_suffixes.end(),
                     [name](std::string_view suffix) { return name.ends_with(suffix) || name == suffix.substr(1); });
}

/// The family's names, without the prefix for a checkpoint that was saved without it.
TensorNames names_in(const Entries& entries, TensorNames names) {
  const auto any_starts_with = [&entries](std::string_view start) {
    const auto first = entries.lower_bound(start);
    return first != entries.end() && first->first.starts_with(start);
  };
  const std::string_view layers = names.layer.substr(0, names.layer.find('{'));
  if (!any_starts_with(names.prefix) && any_starts_with(layers)) names.prefix = "";
  return names;
}

/// A tied embedding that the file only holds as head goes by that name.
void rename_tied_embedding(const Entries& entries, const TensorNames& names, TensorSlot& embedding) {
  const std::string head = std::string(names.head) + ".weight";
  if (!entries.contains(embedding.name) && entries.contains(head)) embedding.name = head;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Collects what is wrong with the tensors of a checkpoint, to say all of it at once.
class FaultList {
 public:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (texts_.size() < max_listed) texts_.push_back(fmt::format(format, std::forward<Args>(args)...));
    ++count_;
  }
  bool full() const { return texts_.size() >= max_listed; }
  void throw_if_any(const std::string& where) const {
    const std::string rest = count_ > texts_.size() ? fmt::format("; and {} more", count_ - texts_.size()) : "";
    CHECK(count_ == 0, "{}: the weights do not fit config.json: {}{}", where, fmt::join(texts_, "; "), rest);
  }

 private:
  std::vector<std::string> texts_;
  std::size_t count_ = 0;
};

/// Names in the file that nothing asks for, inert ones apart.
std::vector<std::string> surplus_names(const Entries& entries, const std::vector<TensorSlot>& slots, const std::string& tied_head) {
  std::set<std::string_view> wanted;
  for (const TensorSlot& slot : slots) wanted.insert(slot.name);
  std::vector<std::string> surplus;
  for (const auto& [name, entry] : entries) {
    if (!wanted.contains(name) && !is_inert(name) && name != tied_head) surplus.push_back(name);
  }
  return surplus;
}

/// Why a head may be missing, for the message.
std::string_view missing_hint(const TensorSlot& slot, const TensorSlot& last, bool tied) {
  return !tied && &slot == &last ? " (tie_word_embeddings is not true, so that the head has weights of its own)" : "";
}

void check_tensors(const Entries& entries, const std::vector<TensorSlot>& slots, const std::string& tied_head, const std::string& where) {
  FaultList faults;
  const std::vector<std::string> surplus = surplus_names(entries, slots, tied_head);
  const auto candidates = std::span(surplus).first(std::min(surplus.size(), max_candidates));
  for (const TensorSlot& slot : slots) {
    const auto found = entries.find(slot.name);
    if (found == entries.end()) {
      faults.add("'{}' {} is missing{}{}", slot.name, shape_text(slot.shape), missing_hint(slot, slots.back(), !tied_head.empty()),
                 faults.full() ? "" : did_you_mean(slot.name, candidates));
    } else if (found->second.shape != slot.shape) {
      faults.add("'{}' has shape {}, expected {}", slot.name, shape_text(found->second.shape), shape_text(slot.shape));
    } else if (!weight_dtype(found->second.dtype)) {
      faults.add("'{}' is {}, expected F64, F32, F16 or BF16", slot.name, formats::name_of(found->second.dtype));
    }
  }
  for (const std::string& name : surplus)
    faults.add("'{}' {} is not part of this model", printable(name, 100), shape_text(entries.at(name).shape));
  faults.throw_if_any(where);
}

/// Both halves of a tied pair in the file: they must be the same, or one of them is not what the model was trained with.
void check_tied_pair(const Entries& entries, const TensorSlot& embedding, const std::string& head, const std::string& where) {
  const auto other = entries.find(head);
  if (other == entries.end() || embedding.name == head) return;
  const formats::TensorEntry& first = entries.at(embedding.name);
  CHECK(first.dtype == other->second.dtype && std::ranges::equal(first.bytes, other->second.bytes),
        "{}: tie_word_embeddings is true, but '{}' and '{}' differ; set it to false if the head was trained apart", where, embedding.name,
        head);
}

void load_slot(const DecoderConfig& config, const formats::TensorEntry& entry, at::ScalarType dtype, const std::string& where,
               const TensorSlot& slot) {
  *slot.target = read_values(entry, dtype, where);
  formats::release_pages(entry.bytes);  // the model once plus one tensor, not twice
  if (slot.gate_target != nullptr) std::tie(*slot.target, *slot.gate_target) = split_gate_rows(config, *slot.target);
}

/// The tensors of a checkpoint, checked by name, shape and dtype and not yet read.
struct CheckedTensors {
  formats::TensorDirectory directory;
  std::vector<TensorSlot> slots;  // point into the checkpoint's weights
};

/// Fills in all of `checkpoint` but the values of its weights.
CheckedTensors check_checkpoint_into(Checkpoint& checkpoint, const std::filesystem::path& path) {
  checkpoint.folder = formats::resolve_checkpoint_folder(path);
  const auto [family, config] = read_config(checkpoint.folder);
  checkpoint.config = config;

  auto directory = formats::TensorDirectory::open(checkpoint.folder);
  checkpoint.files = directory.files();
  checkpoint.files.insert(checkpoint.files.begin(), checkpoint.folder / "config.json");

  const Entries& entries = directory.entries();
  const std::string where = printable(checkpoint.folder.string());
  const TensorNames names = names_in(entries, family->tensors);
  auto slots = tensor_slots(config, names, checkpoint.weights);
  const std::string tied_head = config.tied_head ? std::string(names.head) + ".weight" : "";
  if (config.tied_head) rename_tied_embedding(entries, names, slots.front());
  check_tensors(entries, slots, tied_head, where);
  if (config.tied_head) check_tied_pair(entries, slots.front(), tied_head, where);
  return {std::move(directory), std::move(slots)};
}

}  // namespace

DecoderConfig read_decoder_config(const std::filesystem::path& path) {
  return read_config(formats::resolve_checkpoint_folder(path)).config;
}

DecoderConfig parse_decoder_config(const Json& document, const std::string& where) {
  return parse_config(document, where).config;
}

void check_checkpoint(const std::filesystem::path& path) {
  Checkpoint unread;
  check_checkpoint_into(unread, path);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const LoadOptions& options) {
  dtype_name(options.dtype);  // refuses a dtype no model is computed in
  Checkpoint checkpoint;
  const CheckedTensors tensors = check_checkpoint_into(checkpoint, path);
  const std::string where = printable(checkpoint.folder.string());
  for (const TensorSlot& slot : tensors.slots) {
    load_slot(checkpoint.config, tensors.directory.entries().at(slot.name), options.dtype, where, slot);
  }
  if (checkpoint.config.tied_head) checkpoint.weights.head = checkpoint.weights.embedding;
  return checkpoint;
}

}  // namespace gainlens::models
