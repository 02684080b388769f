// Names of what --out and other options write: one that ends as another format does is refused, before any work.
#include "support/program.h"
#include "support/refused_call.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace file_names_test {

class FileNames : public ::testing::Test {
 protected:
  /// Calls with the option and a path of this name in the folder.
  void refuse(std::vector<std::string> words, const std::string& option, const std::string& name,
              const std::string& reason) {
    const std::string path = folder_.path() / name;
    words.insert(words.end(), {option, path});
    expect_refused(run_gainlens(words), option + ": " + path + ": " + reason);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "data.txt", tiny_histories(5, 3));
};

TEST_F(FileNames, AFileIsOfTheFormatThatItsNameSays) {
  const std::vector<std::string> lists = {"evaluate", "recommend", "--checkpoint", "none",
                                          "--data",   data_,       "--top-k",      "3"};
  refuse(lists, "--out", "x.parquet", "the file is CSV; give it a name that ends in .csv, not in .parquet");
  refuse(lists, "--out", "x.JSON", "the file is CSV; give it a name that ends in .csv, not in .json");
  refuse(lists, "--out", "x.csv.gz", "the file is CSV; give it a name that ends in .csv, not in .gz");
  refuse({"evaluate", "recommend", "--checkpoint", "none", "--data", data_}, "--ranks-out", "x.tsv",
         "the file is CSV; give it a name that ends in .csv, not in .tsv");
  refuse({"make-histories", "--synthetic", "--noise", "1"}, "--out", "x.csv",
         "the file is plain text; give it a name that ends in .txt, not in .csv");
  refuse({"make-histories", "--synthetic", "--noise", "1", "--out", folder_.path() / "y"}, "--items-file", "x.json",
         "the file is CSV; give it a name that ends in .csv, not in .json");
  refuse({"capture", "none", "--tokens", data_, "--hooks", "*"}, "--out", "x.npz",
         "the file is safetensors; give it a name that ends in .safetensors, not in .npz");
  refuse({"sinks", "none"}, "--csv", "x.html", "the file is CSV; give it a name that ends in .csv, not in .html");
}

TEST_F(FileNames, AFolderIsNotCalledAsAFileIs) {
  const std::string wanted = "a folder is written; give a name that does not end in ";
  refuse({"compare", "none"}, "--out", "page.html", wanted + ".html");
  refuse({"sensitivity", "none"}, "--out", "a.json", wanted + ".json");
  refuse({"train", "recommend", "--data", data_}, "--out", "run.h5", wanted + ".h5");
  refuse({"error-by-precision", "none", "--data", data_}, "--out", "a.svg", wanted + ".svg");
  refuse({"estimators"}, "--out", "a.csv", wanted + ".csv");
  std::filesystem::create_directory(folder_.path() / "old.csv");  // it is a folder already
  expect_refused(run_gainlens({"compare", "none", "--out", folder_.path() / "old.csv"}), "none");
}

}  // namespace file_names_test
}  // namespace gainlens::testing
