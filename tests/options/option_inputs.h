#pragma once

#include "options/option_table.h"

#include <string>
#include <vector>

// Inputs of the calls in the tables, which a test program makes once, when they are first asked for.

namespace gainlens::testing {

inline const std::string golden_models = GAINLENS_SOURCE_DIR "/tests/golden/models/";
inline const std::string tiny_model = golden_models + "llama";                 ///< without a tokenizer
inline const std::string gated_model = golden_models + "qwen3-gate-headwise";  ///< without a tokenizer
inline const std::string demo_model = GAINLENS_SOURCE_DIR "/data/demo/gated";  ///< with a tokenizer

/// A file with this content.
std::string input_file(const std::string& name, const std::string& content);

/// A file of 200 token ids, another one for each step: 13, 29 or 31.
std::string token_ids(int step);
/// A text of some sentences, another one for each number.
std::string some_text(int number);
/// A checkpoint whose config.json has a key that is refused: "logit_scale".
std::string odd_checkpoint();

/// Histories without times, those of which the runs below were trained.
std::string histories();
/// Interactions with times: CSV, with a user, an item and a time column of common names, and another of each.
std::string timed_interactions();

/// Runs of sweep.
std::string swept_run(int number);
/// Likewise of odd_checkpoint(), and of the demo's model over some_text(3).
std::string swept_odd_run();
std::string swept_demo_run();
/// Run of train recommend: arms plain, bft and popularity with two seeds.
std::string recommend_run();
/// Others: the same histories with the seeds 5 and 6; other histories.
std::string recommend_run_of_other_seeds();
std::string recommend_run_of_other_data();
/// The same with --grid, for sensitivity.
std::string grid_run();

/// What every refusal begins with.
inline const std::string any_refusal = "gainlens: error: ";

/// Rows for the options of interactions, each with a file that it reads in another way.
std::vector<OptionRow> interaction_rows(const Words& also);
/// Likewise of commands that refuse another split than that of a training: the histories of the training stay, and each
/// option is refused.
std::vector<OptionRow> refused_interaction_rows(const Words& also);

}  // namespace gainlens::testing
