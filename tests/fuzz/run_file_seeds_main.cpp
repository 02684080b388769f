// Writes the seeds of tests/fuzz/corpus/run_file: a small run.h5 of each kind, with long texts, references, both
// indexes of chunks and every filter. Usage: gainlens_run_file_seeds FOLDER
#include "runfile/made_attention_run.h"
#include "runfile/made_experiment_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/made_run.h"

#include <cstdio>
#include <exception>
#include <filesystem>

namespace {

using namespace gainlens;

void write_seeds(const std::filesystem::path& folder) {
  const std::string long_text(5000, 'x');  // longer than a collection of texts usually is
  runfile::Request request = testing::made_request();
  request.layers = {3};
  request.attention = {"global"};
  request.lengths = {8};
  request.heads = 2;
  request.kv_heads = 1;
  const std::filesystem::path run = folder / "run";  // with its shards; removed
  testing::make_run(run, request);
  std::filesystem::rename(run / "run.h5", folder / "sweep");
  std::filesystem::remove_all(run);

  testing::MadeRecommender made;
  made.seeds = {0, 1};
  made.users = 4;
  made.items = 3;
  runfile::RecommendRun recommend = testing::made_recommend_run(made);
  recommend.units[1] = long_text;
  runfile::write_recommend_run(folder / "recommend", recommend, "1.2.3");

  runfile::ExperimentRun experiment =
      testing::made_experiment_run({.arms = {"plain"}, .seeds = {0}, .documents = 4, .gain = 0.2});
  experiment.units[1] = long_text;
  runfile::write_experiment_run(folder / "experiment", experiment, "1.2.3");

  testing::MadeSweep sweep;
  sweep.arms = {"plain", "bft"};
  sweep.seeds = {0};
  sweep.users = 4;
  runfile::write_attention_run(folder / "attention", testing::made_attention_run(sweep), "1.2.3");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: gainlens_run_file_seeds FOLDER\n", stderr);
    return 2;
  }
  try {
    write_seeds(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
