#pragma once

#include "golden/golden.h"

#include <string>
#include <vector>

namespace gainlens::golden {

/// The errors of one checkpoint in one dtype, compared with the reference.
struct Row {
  std::string checkpoint;  ///< name of the golden
  std::string family;
  bool gguf = false;
  std::string dtype;
  double logits = 0;
  double fused_logits = 0;  ///< error of the logits computed without statistics
  double logits_tolerance = 0;
  std::string worst;  ///< the statistic nearest to its tolerance
  double worst_error = 0;
  double worst_tolerance = 0;
  bool within = false;  ///< every error is within its tolerance
};

/// Measures every golden whose checkpoint is available, in float32, float64 and bfloat16.
std::vector<Row> measure_all();

/// The page of supported models in Markdown, made from the table of families and the measured errors.
/// @param support  the section of the support map; empty: it is left out
std::string models_page(const std::vector<Row>& rows, const std::string& support);

/// The largest errors of each family and its checkpoints, as CSV: what the page has the largest of.
std::string errors_csv(const std::vector<Row>& rows);

}  // namespace gainlens::golden
