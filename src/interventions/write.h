#pragma once

#include "interventions/index_range.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// How an intervention is written down: docs/analyses/intervention.md.

namespace gainlens::interventions {

/// What stands at the place afterwards.
enum class Mode {
  zero,
  mean,      ///< the mean of the site over calibration text, for each number of a position
  resample,  ///< what another document has at the same place
  scale,     ///< the native values times a factor
  file,      ///< the values of a safetensors file, as `gainlens capture` writes it
  patch,     ///< what the other of two prompts has at the same place
  knockout   ///< of attention weights: 0, the others enlarged, as if the scores of these keys were -infinity
};

/// Changes one site, or one head, some positions or some keys of it.
struct Write {
  std::string site;  ///< the name of one site
  std::optional<std::int64_t> head;
  std::optional<IndexRange> position;
  std::optional<IndexRange> key;  ///< of attention weights
  Mode mode = Mode::zero;
  double factor = 1;           ///< of Mode::scale; finite
  std::filesystem::path file;  ///< of Mode::file

  /// "blocks.0.attn.hook_z[head=1]=zero". Two writes with one text are the same.
  std::string text() const;
  /// What is written where, in whichever layer, head and position: "attn.hook_z=zero".
  std::string kind() const;
};

/// Of one intervention.
inline constexpr std::size_t max_writes = 4096;

/// Writes that act in one pass.
struct Intervention {
  std::vector<Write> writes;  ///< at least one

  /// The writes, with " + " between them.
  std::string text() const;
  /// Equal for interventions that do the same: the order of the writes does not count.
  std::string key() const;
};

/// @param text  `SITE[head=H][position=P][key=K]=VALUE`, several joined by " + ". VALUE is zero, mean, resample, patch,
///     knockout, a finite number or a file. The factor 0 is zero. `head=1,2`, `position=3,41:81` (81 not included) and
///     braces in SITE (`blocks.{5,11}.hook_mlp_out`, `{5:12}`) stand for several writes in one pass
/// @throws InvalidArgument  another form, a number that is not finite, a file that does not exist, one place twice,
///     more than `max_writes`
Intervention parse_intervention(std::string_view text);

/// A mode that has a name: zero, mean or resample.
/// @throws InvalidArgument  another name (nearest match named)
Mode parse_mode(const std::string& name, std::string_view what);

/// Reads {"interventions": ["...", ..]}.
/// @throws InvalidArgument  missing, not this form, as parse_intervention() (names the file)
std::vector<Intervention> read_interventions(const std::filesystem::path& file);

/// @throws InvalidArgument  two of them are the same
void check_each_once(const std::vector<Intervention>& all);

/// The text of such a file.
std::string interventions_text(const std::vector<Intervention>& interventions);

}  // namespace gainlens::interventions
