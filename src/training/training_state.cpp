#include "training/training_state.h"

#include "core/check.h"
#include "formats/content_checksum.h"
#include "formats/tensor_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <span>
#include <vector>

namespace gainlens::training {
namespace {

constexpr std::string_view format_name = "gainlens-training-state";
constexpr std::pair<at::ScalarType, formats::DType> dtypes[] = {{at::kDouble, formats::DType::f64},
                                                                {at::kFloat, formats::DType::f32},
                                                                {at::kLong, formats::DType::i64},
                                                                {at::kByte, formats::DType::u8}};

formats::DType dtype_on_disk(at::ScalarType type, const std::string& name) {
  for (const auto& [torch, disk] : dtypes) {
    if (torch == type) return disk;
  }
  ASSERT(false, "training state: tensor {} has a type that cannot be stored", name);
  return {};
}

at::Tensor copy_of(const formats::TensorEntry& entry, const std::string& where) {
  for (const auto& [torch, disk] : dtypes) {
    if (disk != entry.dtype) continue;
    at::Tensor tensor = at::empty(entry.shape, torch);
    std::memcpy(tensor.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
    return tensor;
  }
  throw_invalid("{}: tensor '{}' has a type that a training state never holds; delete the file to train from the start",
                where, printable(entry.name, 100));
}

/// The sha256 of a state. With it, a file that was damaged on the disk is refused.
template <typename Tensors>
std::string checksum(const std::string& step, const std::string& notes, const Tensors& tensors) {
  return formats::content_checksum(step + "\n" + notes + "\n", tensors);
}

formats::TensorFile open_state(const std::filesystem::path& file) {
  try {
    return formats::TensorFile::open(file);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; delete it to train from the start", error.what());
  }
}

}  // namespace

void save_training_state(const std::filesystem::path& file, const TrainingState& state) {
  std::vector<at::Tensor> contiguous;  // must exist until the bytes are written
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [name, tensor] : state.tensors) {
    const at::Tensor& kept = contiguous.emplace_back(tensor.detach().contiguous());
    tensors.push_back({name,
                       dtype_on_disk(kept.scalar_type(), name),
                       kept.sizes().vec(),
                       {static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes()}});
  }
  const std::string step = std::to_string(state.step), notes = state.notes.dump();
  const std::string sum = checksum(step, notes, tensors);
  formats::write_tensors(file, tensors,
                         {{"format", std::string(format_name)}, {"step", step}, {"notes", notes}, {"sha256", sum}});
}

TrainingState load_training_state(const std::filesystem::path& file) {
  const formats::TensorFile stored = open_state(file);
  const std::string where = printable(file.string());
  const auto& metadata = stored.metadata();
  const auto format = metadata.find("format"), step = metadata.find("step"), notes = metadata.find("notes");
  const auto sum = metadata.find("sha256");
  CHECK(format != metadata.end() && format->second == format_name && step != metadata.end() &&
            notes != metadata.end() && sum != metadata.end(),
        "{}: not a training state of gainlens; delete it to train from the start", where);
  std::vector<formats::TensorEntry> entries;  // sorted by name, as they were written
  for (const auto& [name, entry] : stored.entries()) entries.push_back(entry);
  CHECK(checksum(step->second, notes->second, entries) == sum->second,
        "{}: has changed since it was written; delete it to train from the start", where);
  TrainingState state;
  const Json number = parse_json(step->second, where + " (step)");
  CHECK(number.is_number_unsigned(), "{}: 'step' is '{}'; must be a whole number of at least 0", where,
        printable(step->second, 40));
  state.step = number.get<std::int64_t>();
  state.notes = parse_json(notes->second, where + " (notes)");
  for (const auto& [name, entry] : stored.entries()) state.tensors.emplace(name, copy_of(entry, where));
  return state;
}

}  // namespace gainlens::training
