#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::hooks {

/// A named place in a model where a tensor can be looked at or replaced, in the field's scheme:
/// `hook_embed`, `blocks.{i}.hook_resid_pre`, `blocks.{i}.attn.hook_q`, `ln_final.hook_normalized`, ...
struct Site {
  std::string name;
  friend bool operator==(const Site&, const Site&) = default;
};

/// `blocks.{layer}.{rest}`
Site block_site(std::int64_t layer, std::string_view rest);

/// What `gainlens hooks` lists: a site with its shape, sizes that depend on the input by name ("batch", "position").
struct SiteShape {
  Site site;
  std::vector<std::string> shape;
  bool on_request =
      false;  ///< costs memory or time: exists only when a hook asks for it (`hook_pattern`, `hook_result`)
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
