#pragma once

#include "formats/tensor_file.h"
#include "recommend/foreign_options.h"
#include "recommend/sasrec_weights.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

// SASRec in the files of other programs.

namespace gainlens::recommend {

struct ForeignSasRec {
  StoredSasRec model;
  /// [id - 1] the names of the items, in the order that read_interactions() gives them; empty: they are numbered
  std::vector<std::string> items;
};

/// Reads a safetensors file with the names of S3-Rec and ICLRec, whose last item id is a mask token.
/// @param path     the file, or a folder with one
/// @param options  the file does not tell the number of heads: absent, it is 2
/// @throws InvalidArgument  missing or broken files; tensors that are missing, surplus or of the wrong shape; NaN or
///     infinity in a tensor
ForeignSasRec load_iclrec(const std::filesystem::path& path, const ForeignOptions& options);

/// Reads a checkpoint of RecBole (*.pth) whose model is SASRec.
/// @param options  `items` is needed: the checkpoint does not say which item has which id
/// @throws InvalidArgument  as load_iclrec and formats::TorchFile::open; another model of RecBole; an option that
/// SASRec
///     does not have here; no names of the items, or another number of them
ForeignSasRec load_recbole(const std::filesystem::path& path, const ForeignOptions& options);

/// Reads a checkpoint of SASRec.pytorch (pmixer), of any of its three forms. The file args.txt in the same folder,
/// which its main.py writes, says which.
/// @param options  without `items`, items are named by their numbers, as in the data of that program
/// @throws InvalidArgument  as load_recbole; args.txt is missing or does not say what is needed
ForeignSasRec load_pmixer(const std::filesystem::path& path, const ForeignOptions& options);

/// The tensors of a file, which are asked for by name.
class ForeignTensors {
 public:
  using Entries = std::map<std::string, formats::TensorEntry, std::less<>>;
  /// @param entries  must exist as long as this object
  ForeignTensors(const Entries& entries, std::string where) : entries_(entries), where_(std::move(where)) {}

  bool has(const std::string& name) const { return entries_.contains(name); }
  /// The shape of a tensor.
  /// @throws InvalidArgument  no such tensor (nearest match named), another number of dimensions
  const std::vector<std::int64_t>& shape(const std::string& name, std::size_t dimensions) const;
  /// Float32. @throws InvalidArgument  no such tensor, another shape, NaN or infinity
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& shape);
  /// @throws InvalidArgument  a tensor was never read
  void check_all_read() const;
  const std::string& where() const { return where_; }

 private:
  const formats::TensorEntry& at(const std::string& name) const;
  const Entries& entries_;
  std::string where_;
  std::map<std::string, bool, std::less<>> read_;
};

/// The weights of a model, each from a tensor of another program.
/// @param read  the tensor of a slot, in its shape
SasRecWeights foreign_weights(const SasRecConfig& config, const std::function<at::Tensor(const WeightSlot&)>& read);

/// Gives the items the order of their names: rows of the embedding and `names`.
/// @param names  [id - 1] of the file
void order_items(SasRecWeights& weights, std::vector<std::string>& names);

/// The names of the items by the ids of a checkpoint.
/// @throws InvalidArgument  as data::read_item_ids; another number of items than in the checkpoint
std::vector<std::string> named_items(const ForeignOptions& options, std::int64_t items, const std::string& where);

}  // namespace gainlens::recommend
