#include "cli/given_run.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/listener.h"
#include "core/plain_text.h"
#include "experiment/job.h"
#include "experiment/proven_run.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"
#include "runfile/depth_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_folder.h"
#include "runfile/run_kind.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

/// How the names of files of known formats end.
constexpr std::string_view known_suffixes[] = {
    ".csv",     ".tsv",   ".tab", ".txt",  ".inter",  ".json", ".jsonl", ".ndjson", ".yaml",        ".parquet", ".pq",
    ".feather", ".arrow", ".orc", ".avro", ".xls",    ".xlsx", ".ods",   ".db",     ".sqlite",      ".h5",      ".hdf5",
    ".npy",     ".npz",   ".mat", ".pkl",  ".pickle", ".pt",   ".pth",   ".bin",    ".safetensors", ".gguf",    ".html",
    ".svg",     ".png",   ".jpg", ".pdf",  ".tex",    ".gz",   ".bz2",   ".xz",     ".zst",         ".zip",     ".tar"};

/// The end of a name, if files of a known format have it; else empty.
std::string_view known_suffix(const fs::path& path) {
  const std::string suffix = ascii_lower(path.extension().string());
  const auto* const found = std::ranges::find(known_suffixes, std::string_view(suffix));
  return found == std::end(known_suffixes) ? std::string_view() : *found;
}

bool is_weight_file(const fs::path& path) {
  return path.extension() == ".gguf" || path.extension() == ".safetensors";
}

bool is_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return is_weight_file(path);
  if (fs::exists(path / "run.h5", ignored) || fs::exists(path / "request.json", ignored)) return false;
  if (fs::exists(path / "config.json", ignored) || fs::is_directory(path / "snapshots", ignored)) return true;
  return std::any_of(fs::directory_iterator(path, ignored), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) { return is_weight_file(entry.path()); });
}

bool holds_shards(const fs::path& folder) {
  std::error_code ignored;
  return std::any_of(fs::directory_iterator(folder, ignored), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) { return entry.path().extension() == ".h5"; });
}

/// Whether the folder holds a run. A sweep that has only begun has made a request and an empty folder for shards.
bool holds_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "run.h5", ignored) || fs::exists(folder / "manifest.jsonl", ignored) ||
         holds_shards(folder / "shards") ||
         (fs::is_directory(folder / "shards", ignored) && fs::exists(folder / "request.json", ignored));
}

/// Absolute and without links, also of a folder that is not there yet.
fs::path real_path(const fs::path& folder) {
  return folder.empty() ? folder : fs::weakly_canonical(fs::absolute(folder));
}

/// Whether there is a run of a kind with this property.
bool has_run_with(const fs::path& folder, bool runfile::RunMark::*property) {
  const runfile::RunMark* const mark = runfile::mark_at(folder);
  return mark != nullptr && mark->*property;
}

/// Whether folders of seeds lie in the folder, or in folders of it.
/// @param levels  1: in it alone
bool holds_seeds(const fs::path& folder, int levels) {
  std::error_code ignored;
  return std::any_of(fs::directory_iterator(folder, ignored), fs::directory_iterator(), [&](const auto& entry) {
    return experiment::seed_of_folder(entry.path().filename().string()).has_value() ||
           (levels > 1 && entry.is_directory() && holds_seeds(entry.path(), levels - 1));
  });
}

/// The run of which the folder is ARM or ARM/VARIANT. Nothing: it is none.
std::optional<fs::path> run_of_arm(const fs::path& folder) {
  const fs::path parent = folder.parent_path();
  constexpr auto property = &runfile::RunMark::has_trainings;
  if (has_run_with(parent, property) && holds_seeds(folder, 2)) return parent;
  if (has_run_with(parent.parent_path(), property) && holds_seeds(folder, 1)) return parent.parent_path();
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> run_of_training(const fs::path& folder) {
  return run_of_arm(real_path(folder).parent_path());
}

namespace {

/// @throws InvalidArgument  the checkpoint of a recommender; the message names its run
void refuse_recommender(const fs::path& path) {
  if (!recommend::is_recommender(path)) return;
  const auto run = recommend::run_of_checkpoint(path);
  throw_invalid("{}: is the checkpoint of a recommender; give the run folder{} to gainlens report, compare or check",
                printable(path.string()),
                run ? " " + printable(run->string()) : " in which gainlens train recommend wrote it");
}

/// @throws InvalidArgument  a checkpoint (the message says how to sweep it), or a recommender run
void refuse_other_than_sweep(const fs::path& path) {
  const std::string shown = printable(path.string());
  refuse_recommender(path);
  const fs::path checkpoint = path.extension() == ".safetensors" ? path.parent_path() : path;
  const auto trained_by = run_of_training(checkpoint);
  CHECK(
      !is_checkpoint(path),
      "{}: is a checkpoint, and a run is needed here; {}sweep it first: gainlens sweep {} --text FILE --out RUN, then "
      "give RUN",
      shown, trained_by ? fmt::format("give {}, the run of its training, or ", printable(trained_by->string())) : "",
      printable(checkpoint.string()));
  runfile::refuse_other_than_sweep(path);
}

}  // namespace

void check_holds_no_run(const fs::path& folder, const std::string& option) {
  const fs::path real = fs::weakly_canonical(folder);
  const bool holds_units = has_run_with(real, &runfile::RunMark::has_units);
  CHECK(!holds_run(real) && !holds_units, "{}: {} is the folder of a run; choose another folder", option,
        printable(folder.string()));
  CHECK(real.filename() != "shards" || !holds_run(real.parent_path()),
        "{}: {} holds the shards of a run; choose another folder", option, printable(folder.string()));
  check_can_be_run_folder(folder, option);
}

void check_is_new_file(const std::string& option, const fs::path& file, const WrittenFormat& format) {
  const std::string shown = printable(file.string());
  std::error_code error;
  const fs::file_status found = fs::symlink_status(file, error);
  CHECK(!fs::exists(found), "{}: {} exists; choose another name or remove it", option, shown);
  const fs::path folder = fs::absolute(file).parent_path();
  CHECK(fs::is_directory(folder, error), "{}: there is no folder {}; make it first", option,
        printable(folder.string()));
  CHECK(found.type() == fs::file_type::not_found && file.has_filename(), "{}: {}: cannot be the name of a file", option,
        shown);
  check_holds_no_run(folder, option);
  const std::string_view suffix = known_suffix(file);
  CHECK(suffix.empty() || suffix == format.suffix, "{}: {}: the file is {}; give it a name that ends in {}, not in {}",
        option, shown, format.name, format.suffix, suffix);
}

void check_can_be_run_folder(const fs::path& folder, const std::string& option) {
  std::error_code ignored;
  CHECK(known_suffix(folder).empty() || fs::is_directory(folder, ignored),
        "{}: {}: a folder is written; give a name that does not end in {}", option, printable(folder.string()),
        known_suffix(folder));
  for (fs::path at = real_path(folder); at.has_relative_path(); at = at.parent_path()) {
    const auto run = run_of_arm(at);
    CHECK(!run, "{}: {} lies among the checkpoints of the run {}; choose another folder", option,
          printable(folder.string()), printable(run->string()));
  }
}

void check_lies_outside_model(const fs::path& folder, const fs::path& model) {
  if (!fs::is_directory(model)) return;
  const fs::path model_folder = fs::canonical(model);
  for (fs::path at = real_path(folder); at.has_relative_path(); at = at.parent_path())
    CHECK(at != model_folder, "--out: {} lies in the folder of the model, {}; choose another folder",
          printable(folder.string()), printable(model.string()));
}

ProvenTrainings<runfile::RecommendRun> prove_recommend_run(const fs::path& path) {
  refuse_recommender(path);
  const auto trained_by = run_of_training(path);
  CHECK(!trained_by, "{}: is one training of the run {}; give the run", printable(path.string()),
        trained_by ? printable(trained_by->string()) : "");
  recommend::ProvenRun proven = recommend::read_proven_run(path);
  ProvenTrainings<runfile::RecommendRun> found{std::make_shared<const runfile::RecommendRun>(std::move(proven.run))};
  if (!proven.unproven.empty()) found.unproven.push_back(std::move(proven.unproven));
  return found;
}

ProvenTrainings<runfile::ExperimentRun> prove_experiment_run(const fs::path& path) {
  experiment::ProvenRun proven = experiment::read_proven_run(path);
  return {std::make_shared<const runfile::ExperimentRun>(std::move(proven.run)), std::move(proven.unproven)};
}

void tell_unproven(const fs::path& path, std::span<const std::string> sentences) {
  for (const std::string& sentence : sentences) tell_warning("{}: {}", printable(path.string()), sentence);
}

runfile::Proof tell_proof(const fs::path& path, const std::string& result) {
  const std::string unproven = runfile::prove_store(path, result);
  if (!unproven.empty()) tell_unproven(path, {&unproven, 1});
  return runfile::Proof::by_caller;
}

std::shared_ptr<const runfile::RecommendRun> given_recommend_run(const fs::path& path) {
  const ProvenTrainings<runfile::RecommendRun> proven = prove_recommend_run(path);
  tell_unproven(path, proven.unproven);
  return proven.run;
}

DoubtfulRun open_doubtful_run(const fs::path& path) {
  refuse_other_than_sweep(path);
  if (auto stopped = runfile::open_stopped_sweep(path))
    return {{std::move(stopped->proof), std::move(stopped->reader)}, {}};
  runfile::RunReader reader = runfile::RunReader::open(path);
  try {
    return {{runfile::prove_run(path), std::move(reader)}, {}};
  } catch (const InvalidArgument& error) {
    return {{{}, std::move(reader)}, error.what()};
  }
}

GivenRun open_given_run(const fs::path& path) {
  refuse_other_than_sweep(path);
  runfile::RunProof proof = runfile::prove_run(path);  // first, before the run is read
  GivenRun given{std::move(proof), runfile::RunReader::open(path)};
  if (!given.proof.run_file_compared) tell_warning("{}: {}", printable(path.string()), runfile::no_checksum);
  if (!given.proof.depth_compared)
    tell_warning("{}: {}", printable(path.string()), runfile::no_checksum_beside(runfile::depth_file));
  return given;
}

GivenRun open_begun_run(const fs::path& path) {
  refuse_other_than_sweep(path);
  auto stopped = runfile::open_stopped_sweep(path);
  if (!stopped) return open_given_run(path);
  tell_unproven(path, {&stopped->proof.unproven, 1});
  return {std::move(stopped->proof), std::move(stopped->reader)};
}

void check_report_folder(const std::string& report, const std::string& run) {
  const std::filesystem::path folder = std::filesystem::weakly_canonical(report);
  check_holds_no_run(folder, "--report");
  CHECK(folder != std::filesystem::weakly_canonical(run), "--report: {} is the folder of a run; choose another folder",
        printable(report));
  ensure_writable_folder(folder);
}

void tell_left_out(const reports::WrittenReport& written) {
  for (const std::string& reason : written.left_out) print_notice("gainlens: left out: {}\n", reason);
}

void check_made(const reports::WrittenReport& written, std::string_view command) {
  if (!written.failed.empty())
    throw_run_failed("{}: {} could not be made; the other sections are written", command,
                     printable(fmt::format("{}", fmt::join(written.failed, "; ")), 600));
}

void tell_written(const reports::WrittenReport& written, const std::filesystem::path& out, std::string_view command) {
  tell_left_out(written);
  print_notice("{}\n", printable((out / "report.html").string()));
  check_made(written, command);
}

}  // namespace gainlens::cli
