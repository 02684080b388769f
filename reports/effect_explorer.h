#pragma once

#include "analyses/effect_map.h"
#include "reports/page/embedded_data.h"
#include "reports/section.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Effects in named rows and columns, as of arms in contexts.
struct NamedEffects {
  std::string title;                  ///< in the list of maps; plain text
  std::vector<std::string> rows;      ///< from above; short
  std::vector<std::string> columns;   ///< short
  std::string axes;                   ///< "arm ↓ context →"
  std::vector<double> values;         ///< [row x columns + column]; NaN: not known
  std::vector<std::string> cells;     ///< likewise: the line of each
  std::vector<std::size_t> doubtful;  ///< cells that are crossed
};

/// Maps of effects that the page's script shows one at a time (page/script/effects.js). A cell that is pointed at, or
/// reached by the arrow keys, says its numbers in a line below. Without a script the page shows nothing of them.
///
/// Their data are the words {"colours": [..], "maps": [{"title": .., "rows": [layer, ..], "columns": n, "axes": ..,
/// "range": [-x, x], "chosen": cell, "crossed": [cell, ..], "from": place, "cells": [text, ..]}, ..]}. A cell is layer
/// times columns plus column, and "from" is the place of the first cell's value among the numbers: see embedded_data.h.
/// Named effects have "names" of their columns and "left", the pixels that the names of their rows take.
class EffectExplorer {
 public:
  EffectExplorer();

  /// Adds a map.
  /// @param title    in the list of maps; plain text
  /// @param largest  the magnitude that has the outermost colours
  /// @param say      the line of a cell: of where it is ("Layer 3, head 2") and of EffectMap::places
  void add(const std::string& title, const analyses::EffectMap& map, double largest,
           const std::function<std::string(const std::string& where, std::size_t place)>& say);

  /// Adds a map whose colours end at its largest magnitude.
  void add(const NamedEffects& effects);

  /// What the section shows; nothing where no map was added.
  /// @param doubtful  what crossed cells are: "the interval holds 0"
  std::vector<Block> blocks(const std::string& doubtful) const;

 private:
  EmbeddedData data_;
};

}  // namespace gainlens::reports
