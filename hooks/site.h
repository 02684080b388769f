#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::hooks {

/// A named place in a model where a tensor can be looked at or replaced. Names follow the usual scheme of the field:
/// `hook_embed`, `blocks.{i}.hook_resid_pre`, `blocks.{i}.attn.hook_q`, `ln_final.hook_normalized`, ...
struct Site {
  std::string name;
  friend bool operator==(const Site&, const Site&) = default;
};

/// `blocks.{layer}.{rest}`
Site block_site(std::int64_t layer, std::string_view rest);

/// `hook_logits`: [batch, position, vocabulary], what HookedModel::unembed gives of the result of a forward pass. It
/// can be observed and not replaced, since a forward pass returns the stream.
const Site& logits_site();

/// A site with its shape, as `gainlens hooks` lists it. Sizes that depend on the input are given by name ("batch",
/// "position").
struct SiteShape {
  Site site;
  std::vector<std::string> shape;
  /// Costs memory or time: exists only when a hook asks for it (`hook_pattern`, `hook_result`, `hook_logits`).
  bool on_request = false;
};

/// Shell-style pattern over site names: `*`, `?`, `[abc]`, and alternatives in braces `{q,k}`; `*` crosses dots.
class Glob {
 public:
  explicit Glob(std::string pattern);
  bool matches(const Site& site) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> alternatives_;  // braces expanded
};

/// @throws InvalidArgument  a glob that matches none of the sites (names the nearest)
std::vector<SiteShape> select_sites(const std::vector<Glob>& globs, const std::vector<SiteShape>& sites);

}  // namespace gainlens::hooks
