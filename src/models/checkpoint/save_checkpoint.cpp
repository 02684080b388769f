#include "models/checkpoint/save_checkpoint.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "formats/tensor_file.h"
#include "models/all_finite.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/families/family.h"

#include <ATen/ATen.h>

namespace gainlens::models {
namespace {

formats::DType dtype_on_disk(at::ScalarType dtype) {
  for (const formats::DType disk :
       {formats::DType::f64, formats::DType::f32, formats::DType::f16, formats::DType::bf16}) {
    if (weight_dtype(disk) == dtype) return disk;
  }
  throw_invalid("checkpoint: weights cannot be stored as {}", dtype_name(dtype));
}

at::Tensor narrowed(const std::string& name, const at::Tensor& tensor, at::ScalarType dtype) {
  const at::Tensor stored = tensor.detach().to(dtype).contiguous();
  CHECK(all_finite(stored), "checkpoint: '{}' has values that {} cannot hold", name, dtype_name(dtype));
  return stored;
}

}  // namespace

std::vector<NamedTensor> checkpoint_tensors(const DecoderConfig& config, DecoderWeights weights) {
  std::vector<NamedTensor> tensors;
  const SlotTargets targets(weights);
  for (const TensorSlot& slot : tensor_slots(config, tensor_names(family_named(config.family, "checkpoint"), config))) {
    tensors.push_back({slot.name, pack(slot, targets.parts(slot))});
    ASSERT(tensors.back().tensor.sizes() == at::IntArrayRef(slot.shape),
           "'{}' does not have the shape that its configuration gives", slot.name);
  }
  return tensors;
}

void save_checkpoint(const std::filesystem::path& folder, const OrderedJson& document, const DecoderWeights& weights,
                     at::ScalarType dtype) {
  const formats::DType disk = dtype_on_disk(dtype);
  const DecoderConfig config = parse_decoder_config(Json(document), "config.json");
  std::vector<NamedTensor> stored;
  for (const NamedTensor& weight : checkpoint_tensors(config, weights)) {
    stored.push_back({weight.name, narrowed(weight.name, weight.tensor, dtype)});
  }
  std::vector<formats::TensorToWrite> tensors;
  tensors.reserve(stored.size());
  for (const auto& [name, tensor] : stored) {
    tensors.push_back(
        {name, disk, tensor.sizes().vec(), {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  ensure_writable_folder(folder);
  formats::write_tensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  write_file_atomically(folder / "config.json", document.dump(2) + "\n");
}

}  // namespace gainlens::models
