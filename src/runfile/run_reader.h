#pragma once

#include "runfile/request.h"
#include "runfile/shard.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// Reads run.h5. The file is untrusted: shapes, types and names are checked against the schema when opened.
class RunReader {
 public:
  /// @param path      a run folder or a run.h5
  /// @param stands_for  what path() is then, if the file stands for another one
  /// @throws InvalidArgument  missing, not HDF5, another format or version, datasets that do not fit the schema, a
  ///                          folder whose sweep has not been combined
  static RunReader open(const std::filesystem::path& path, const std::filesystem::path& stands_for = {});
  ~RunReader();
  RunReader(RunReader&&) noexcept;
  RunReader& operator=(RunReader&&) noexcept;

  const std::filesystem::path& path() const;  ///< of run.h5
  const Request& request() const;
  const std::vector<std::int64_t>& lengths() const;
  std::int64_t samples() const;
  const std::vector<std::int64_t>& layers() const;  ///< original indices
  std::int64_t heads() const;
  std::int64_t kv_heads() const;  ///< of the axis kv_head
  /// KV heads of the model in a layer, by its position among the measured ones. Each stands kv_heads() / own times in a
  /// row on the axis kv_head.
  std::int64_t kv_heads(std::size_t layer) const;
  std::int64_t kv_repeats(std::size_t layer) const;                     ///< kv_heads() / own
  std::int64_t kv_head_of(std::size_t layer, std::int64_t head) const;  ///< of the model, that a query head reads
  const std::vector<std::string>& attention() const;                    ///< per layer
  bool complete(std::size_t length_index, std::int64_t sample) const;
  /// Leaves the other lengths out of every analysis; the datasets keep them.
  /// @throws InvalidArgument  the run has no such length
  void keep_lengths(const std::vector<std::int64_t>& tokens);
  bool is_kept(std::size_t length_index) const;  ///< true of all lengths unless some were chosen

  /// e.g. "summary/n_eff", "profile/gate", "values/norm", "queries/512/n_eff"
  bool has(std::string_view name) const;
  std::vector<std::string> names() const;  ///< those of numbers and integers, which read() takes
  /// The whole dataset with its [length, sample, ...] axes (queries: [sample, ...]); NaN, or -1 in datasets of
  /// integers, where missing.
  /// @throws InvalidArgument  no such dataset (nearest match named), or it cannot be read
  Array read(std::string_view name) const;
  /// The same of a dataset of text, row-major: any bytes but NUL, "" where there is none.
  /// @throws InvalidArgument  as read()
  std::vector<std::string> read_text(std::string_view name) const;

 private:
  struct State;
  explicit RunReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gainlens::runfile
