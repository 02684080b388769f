#pragma once

#include "options/observed_run.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::testing {

/// A value of an option, and the call in which it changes something.
struct OptionRow {
  std::string option;        ///< "--samples", or the name of an argument without a name: "model"
  Words value = {};          ///< none for a flag
  Words also = {};           ///< of both calls, with_words(): what the option needs to act
  std::string refused = {};  ///< part of the message, for an option that only a refusal can show here
};

/// The options of a subcommand.
struct OptionTable {
  Words command;  ///< "train", "finetune"
  Words call;     ///< the arguments of a small call
  std::vector<OptionRow> rows;
  std::map<std::string, std::string> unseen = {};  ///< options whose effect no output shows: why
};

/// The call with other arguments. An option replaces the same option of the call, and "!--option" takes it away. Words
/// before the first option replace the arguments without a name.
Words with_words(Words call, const Words& words);

std::vector<OptionTable> tables_of_models();
std::vector<OptionTable> tables_of_runs();
std::vector<OptionTable> tables_of_training();

/// The table to which a row is to be added, for messages.
inline constexpr std::string_view table_files = "tests/options/tables_of_*.cpp";

}  // namespace gainlens::testing
