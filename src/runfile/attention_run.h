#pragma once

#include "core/strata.h"
#include "core/user_attention.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

inline constexpr std::string_view attention_run_format = "gainlens-recommender-sweep";
inline constexpr std::int64_t attention_run_version = 1;

/// The sweep of recommenders: what the attention of each head rests on, for each user of the test. The units are users;
/// a result is there if its training is finished, and is empty. Docs: docs/run-file.md.
struct AttentionRun : TrainedRun {  // the request has "backbone", "weights" and "kalman_gain" too
  UserCounts users;
  std::vector<std::int64_t> last_item;              ///< [user] id of the last item of the history, from 1
  std::vector<std::optional<UserAttention>> swept;  ///< [arm, seed]; empty: the training is not finished

  std::string backbone() const { return request.at("backbone"); }
  const std::optional<UserAttention>& attention(std::size_t arm, std::size_t seed) const {
    return swept.at(arm * seeds.size() + seed);
  }
  /// How often the last item of a user's history stands in the training items.
  std::int64_t last_count(std::size_t user) const {
    return users.item_train_count[static_cast<std::size_t>(last_item[user] - 1)];
  }
};

/// Writes run.h5 completely or not at all. The same arguments give the same bytes.
/// @throws RunFailed      a write, a flush or a closing failed
/// @throws InternalError  sizes that do not fit each other
void write_attention_run(const std::filesystem::path& path, const AttentionRun& run,
                         std::string_view program_version = {});

/// The file is untrusted: it is compared with `run.h5.sha256` beside it, where there is one; shapes, types and values
/// are checked. Unknown groups and datasets are not read.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  missing, not HDF5, another format or version, datasets that are absent or do not fit each
///     other, values out of range
AttentionRun read_attention_run(const std::filesystem::path& path);

}  // namespace gainlens::runfile
