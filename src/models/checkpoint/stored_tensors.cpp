#include "models/checkpoint/stored_tensors.h"

#include "core/check.h"
#include "core/nearest.h"
#include "formats/dequantise.h"
#include "models/checkpoint/compute_dtype.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace gainlens::models {
namespace {

constexpr std::size_t max_listed = 10;        // faults that a message lists; the others are counted
constexpr std::size_t max_candidates = 2000;  // names compared for a nearest match

/// Tables that can be computed from the configuration. Old checkpoints and GGUF files store them.
constexpr std::array inert_tensor_suffixes = {".rotary_emb.inv_freq", ".rotary_emb.cos_cached",
                                              ".rotary_emb.sin_cached"};
constexpr std::array gguf_tables = {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"};

bool is_inert(const CheckpointSource& source, std::string_view name) {
  const auto ends = [name](std::string_view suffix) { return name.ends_with(suffix) || name == suffix.substr(1); };
  const auto contains = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
  return std::ranges::any_of(inert_tensor_suffixes, ends) ||
         std::ranges::any_of(source.family->inert_tensors, contains) ||
         std::ranges::any_of(source.inert_prefixes, begins) ||
         (source.is_gguf() && std::ranges::find(gguf_tables, name) != gguf_tables.end());
}

/// The name of a tied head; empty if the head is not tied.
std::string tied_head(const CheckpointSource& source) {
  return source.config.tied_head ? std::string(source.names.head) + ".weight" : "";
}

/// If the file has a tied embedding only as head, the slot takes the name of the head.
void rename_tied_embedding(const CheckpointSource& source, TensorSlot& embedding) {
  const std::string head = tied_head(source);
  if (!head.empty() && !source.entries().contains(embedding.name) && source.entries().contains(head))
    embedding.name = head;
}

std::vector<TensorSlot> slots_of(const CheckpointSource& source) {
  auto slots = tensor_slots(source.config, source.names);
  rename_tied_embedding(source, slots.front());
  return slots;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Collects the faults of the tensors of a checkpoint, to report them together.
class FaultList {
 public:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (texts_.size() < max_listed) texts_.push_back(fmt::format(format, std::forward<Args>(args)...));
    ++count_;
  }
  bool full() const { return texts_.size() >= max_listed; }
  void throw_if_any(const std::string& where, std::string_view description) const {
    const std::string rest = count_ > texts_.size() ? fmt::format("; and {} more", count_ - texts_.size()) : "";
    CHECK(count_ == 0, "{}: the weights do not fit {}: {}{}", where, description, fmt::join(texts_, "; "), rest);
  }

 private:
  std::vector<std::string> texts_;
  std::size_t count_ = 0;
};

/// Whether a tensor of this shape fits the slot. GGUF files do not tell sizes of 1: their writers drop them, and keep
/// the order of the numbers.
bool fits(const CheckpointSource& source, std::vector<std::int64_t> shape, const TensorSlot& slot) {
  std::vector<std::int64_t> expected = slot.shape;
  if (source.is_gguf()) {
    std::erase(shape, 1);
    std::erase(expected, 1);
  }
  return shape == expected;
}

/// Names in the file that no slot asks for, without inert ones.
std::vector<std::string> surplus_names(const CheckpointSource& source, const std::vector<TensorSlot>& slots) {
  std::set<std::string_view> wanted;
  for (const TensorSlot& slot : slots) {
    const StoredTensor stored = stored_for(source, slot);
    if (stored.scaled == nullptr) {
      wanted.insert(slot.name);
    } else {
      wanted.insert({stored.scaled->numbers.name, stored.scaled->scales.name});
    }
  }
  std::vector<std::string> surplus;
  for (const auto& [name, entry] : source.entries()) {
    if (!wanted.contains(name) && !is_inert(source, name) && name != tied_head(source)) surplus.push_back(name);
  }
  return surplus;
}

/// A hint for the message about a missing head.
std::string_view missing_hint(const TensorSlot& slot, const TensorSlot& last, bool tied) {
  return !tied && &slot == &last ? " (tie_word_embeddings is not true, so the head needs weights of its own)" : "";
}

void check_entries(const CheckpointSource& source, const std::vector<TensorSlot>& slots) {
  FaultList faults;
  const TensorEntries& entries = source.entries();
  const std::vector<std::string> surplus = surplus_names(source, slots);
  const auto candidates = std::span(surplus).first(std::min(surplus.size(), max_candidates));
  for (const TensorSlot& slot : slots) {
    const StoredTensor found = stored_for(source, slot);
    if (found.entry == nullptr && found.scaled == nullptr) {
      faults.add("'{}' {} is missing{}{}", slot.name, shape_text(slot.shape),
                 missing_hint(slot, slots.back(), source.config.tied_head),
                 faults.full() ? "" : did_you_mean(slot.name, candidates));
    } else if (const std::vector<std::int64_t> shape = found.shape(); !fits(source, shape, slot)) {
      faults.add("'{}' has shape {}, expected {}", slot.name, shape_text(shape), shape_text(slot.shape));
    } else if (found.entry != nullptr && !stored_compute_dtype(found.entry->dtype) &&
               !formats::is_quantised(found.entry->dtype)) {
      faults.add("'{}' is {}, expected F64, F32, F16 or BF16{}", slot.name, formats::name_of(found.entry->dtype),
                 source.is_gguf() ? ", or a quantised type" : "");
    }
  }
  for (const std::string& name : surplus)
    faults.add("'{}' {} is not part of this model", printable(name, 100), shape_text(entries.at(name).shape));
  faults.throw_if_any(source.where(), source.is_gguf() ? "metadata" : "config.json");
}

/// If the file has both tensors of a tied pair, they must be equal: else the model was trained with other weights than
/// one of them.
void check_tied_pair(const CheckpointSource& source, const TensorSlot& embedding) {
  const std::string head = tied_head(source);
  const auto other = source.entries().find(head), first = source.entries().find(embedding.name);
  if (head.empty() || other == source.entries().end() || embedding.name == head) return;
  const bool same = first != source.entries().end() && first->second.dtype == other->second.dtype &&
                    std::ranges::equal(first->second.bytes, other->second.bytes);
  CHECK(same,
        "{}: tie_word_embeddings is true, but '{}' and '{}' differ; set it to false if the head was trained separately",
        source.where(), embedding.name, head);
}

}  // namespace

std::vector<std::int64_t> StoredTensor::shape() const {
  std::vector<std::int64_t> shape = scaled != nullptr ? scaled->shape : entry->shape;
  if (swapped && shape.size() >= 2) std::swap(shape.end()[-1], shape.end()[-2]);
  return shape;
}

StoredTensor stored_for(const CheckpointSource& source, const TensorSlot& slot) {
  if (const auto scaled = source.scaled.find(slot.name); scaled != source.scaled.end())
    return {nullptr, &scaled->second, slot.transposed && scaled->second.form == formats::ScaledForm::mxfp4};
  const auto entry = source.entries().find(slot.name);
  return {entry == source.entries().end() ? nullptr : &entry->second, nullptr, false};
}

std::vector<TensorSlot> outer_slots_of(const CheckpointSource& source) {
  auto slots = outer_slots(source.config, source.names);
  rename_tied_embedding(source, slots.front());
  return slots;
}

void check_tensors(const CheckpointSource& source) {
  const auto slots = slots_of(source);
  check_entries(source, slots);
  check_tied_pair(source, slots.front());
}

}  // namespace gainlens::models
