#pragma once

#include <span>
#include <string_view>

namespace gainlens::analyses {

/// A setting of the filter whose sensitivity the paper shows.
struct PaperKnob {
  std::string_view key;     ///< of the settings
  std::string_view symbol;  ///< as text: "K0"
  std::string_view plot;    ///< the same in gnuplot's markup
  bool tunable;             ///< the paper calls it worth tuning; otherwise flat
  std::string_view says;    ///< what the paper says of it, in few words
};

/// The seven, in the order of the paper's figures: four flat, three tunable.
/// Source: bft.tex, appendix ablations (Beauty, HR@10, 10 seeds).
std::span<const PaperKnob> paper_knobs();
/// Null for other settings.
const PaperKnob* find_paper_knob(std::string_view key);

}  // namespace gainlens::analyses
