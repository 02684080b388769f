#include "reports/terminal/depth_terminal.h"

#include "analyses/depth.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "reports/page/table.h"

#include <fmt/format.h>

namespace gainlens::reports {

std::string print_depth(const runfile::DepthRun& run) {
  const std::vector<analyses::DepthAtLength> lengths = analyses::depth_by_length(run);
  const analyses::DepthAtLength& longest = lengths.back();
  return fmt::format("\nPrecision through the depth, {} tokens, {}\n", format_count(longest.tokens),
                     counted(longest.samples, "chunk")) +
         text_table(analyses::layers_of({&longest, 1})) + wrapped(analyses::last_layer_words(longest));
}

}  // namespace gainlens::reports
