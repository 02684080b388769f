#pragma once

#include "reports/sweep/sweep_run.h"

#include <string>

namespace gainlens::reports {

/// What log.json says of the last start of the sweep, safe to show; empty where the run's folder does not say it.
struct LastStart {
  std::string model;  ///< name of its file or folder
  std::string text;   ///< name of its file
  std::string time;
  std::string version;  ///< of gainlens
};
LastStart last_start(const SweepRun& run);

/// "gemma-3-270m-q4_k_m", or "weights a5fd3b62230a" of a run without log.json: the first digits of their sha256.
std::string model_name(const SweepRun& run);
/// "wiki.test.txt", or "text 173c87a53759".
std::string text_name(const SweepRun& run);

/// The first twelve digits of a sha256; another text as it is.
std::string short_digest(const std::string& digest);
/// short_digest() of every file of weights.
std::string weights_digest(const SweepRun& run);

}  // namespace gainlens::reports
