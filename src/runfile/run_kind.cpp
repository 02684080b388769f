#include "runfile/run_kind.h"

#include "core/check.h"
#include "runfile/attention_run.h"
#include "runfile/experiment_run.h"
#include "runfile/gate_arms_run.h"
#include "runfile/hdf5.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_file_name.h"
#include "runfile/schema.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <system_error>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr RunMark marks_of_runs[] = {
    {.kind = RunKind::sweep,
     .words = "a sweep",
     .key = "statistics_version",
     .attribute = run_format,
     .instead_of_others = "is a run of gainlens sweep, and {} is needed here; read it with gainlens report"},
    {.kind = RunKind::recommender_sweep,
     .words = "a sweep of recommenders",
     .attribute = attention_run_format,
     .command = "gainlens sweep",
     .instead_of_sweep = "gainlens report and inspect read it, and the sweep of a language model is needed here"},
    {.kind = RunKind::recommenders,
     .words = "a recommender run",
     .key = "backbone",
     .attribute = recommend_run_format,
     .has_trainings = true,
     .command = "gainlens train recommend",
     .instead_of_sweep = "gainlens report and compare read it, and a run of gainlens sweep is needed here"},
    {.kind = RunKind::experiment,
     .words = "the run of an experiment",
     .key = "unit",
     .attribute = experiment_run_format,
     .has_trainings = true,
     .command = "gainlens train",
     .instead_of_sweep =
         "gainlens compare, check, report and inspect read it, and a run of gainlens sweep is needed here"},
    {.kind = RunKind::interventions,
     .words = "a run of intervene",
     .format = intervention_run_format,
     .version = intervention_run_version,
     .has_units = true},
    {.kind = RunKind::patching,
     .words = "a run of intervene",
     .format = patching_run_format,
     .version = patching_run_version,
     .has_units = true},
    {.kind = RunKind::gate_arms,
     .words = "a run of gate-arms",
     .format = gate_arms_format,
     .version = gate_arms_version,
     .has_units = true},
    {.kind = RunKind::language_training,
     .words = "the training of a language model",
     .training = "train language-model"},
};

/// Finds out of which kind the files of a run are.
class Inquiry {
 public:
  Inquiry(std::string where, std::span<const RunMark> marks) : where_(std::move(where)), marks_(marks) {}

  const RunMark* found() const { return found_; }

  /// The request of a run. @returns it; null: it cannot be read
  Json ask_request(const fs::path& file) {
    const Json request = read(file);
    if (!request.is_object()) return nullptr;
    for (const RunMark& mark : marks_) {
      if (!mark.key.empty() && request.contains(mark.key)) note(mark, request_file_name);
    }
    const std::string format = text_in(request, "format");
    for (const RunMark& mark : marks_) {
      if (mark.format.empty() || mark.format != format) continue;
      note(mark, request_file_name);
      const auto version = request.find("version");
      const bool is_newer =
          version != request.end() && version->is_number_integer() && version->get<std::int64_t>() > mark.version;
      CHECK(!is_newer,
            "{}: its {} was made by a newer version of gainlens; /version is {}, and this one knows up to {}", where_,
            request_file_name, version->dump(), mark.version);
    }
    for (const char* key : {"format", "kind"}) {
      const std::string told = text_in(request, key);
      CHECK(found_ != nullptr || told.empty(),
            "{}: its {} has the {} '{}', which this gainlens does not know; use the gainlens that made it", where_,
            request_file_name, key, printable(told, 60));
    }
    return request;
  }

  /// The request of a training that has a folder of its own. One that is damaged is known by its name: whoever reads it
  /// says what is wrong.
  void ask_training(const fs::path& file) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return;
    const Json request = read(file);
    const std::string kind = text_in(request, "kind");
    for (const RunMark& mark : marks_) {
      if (mark.training.empty()) continue;
      if (request.is_discarded() ? found_ == nullptr : mark.training == kind) note(mark, "training/request.json");
    }
  }

  void ask_run_file(const fs::path& file) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return;
    try {
      const auto format = hdf5::read_text_attribute(hdf5::open_file(file).get(), "format");
      for (const RunMark& mark : marks_) {
        if (format && !mark.attribute.empty() && mark.attribute == *format) note(mark, run_file_name);
      }
    } catch (const hdf5::Error&) {  // whoever reads it says what is wrong
    }
  }

 private:
  /// The JSON of a file; discarded: it is missing or damaged.
  static Json read(const fs::path& file) {
    try {
      return read_json_file(file);
    } catch (const InvalidArgument&) {
      return Json(Json::value_t::discarded);
    }
  }

  /// A text of an object; empty: there is none.
  static std::string text_in(const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  void note(const RunMark& mark, std::string_view file) {
    CHECK(found_ == nullptr || found_->kind == mark.kind,
          "{}: is two kinds of run at once: by its {} {}, and by its {} {}; give each run a folder of its own", where_,
          file_, found_->words, file, mark.words);
    found_ = &mark;
    file_ = file;
  }

  std::string where_;
  std::span<const RunMark> marks_;
  const RunMark* found_ = nullptr;
  std::string_view file_;  // which told it
};

}  // namespace

std::span<const RunMark> run_marks() {
  return marks_of_runs;
}

const RunMark& mark_of(RunKind kind) {
  const auto* const found = std::ranges::find(marks_of_runs, kind, &RunMark::kind);
  ASSERT(found != std::end(marks_of_runs), "a kind of run without a mark");
  return *found;
}

std::optional<FoundRun> identify(const fs::path& given, std::span<const RunMark> marks) {
  std::error_code error;
  const fs::path real = fs::canonical(given, error);
  if (error) return std::nullopt;
  const bool is_folder = fs::is_directory(real, error);
  // A folder and its run.h5 are one run. A file of another name stands for itself.
  const fs::path named = given.filename() == run_file_name ? fs::absolute(given) : real;
  const bool has_folder = is_folder || named.filename() == run_file_name;
  const fs::path folder = is_folder ? real : fs::canonical(named.parent_path());
  const fs::path file = is_folder ? folder / run_file_name : named;
  Inquiry inquiry(printable(given.string()), marks);
  Json request;
  if (has_folder) request = inquiry.ask_request(folder / request_file_name);
  inquiry.ask_run_file(file);
  if (has_folder) inquiry.ask_training(folder / "training" / request_file_name);
  if (inquiry.found() != nullptr) return FoundRun{folder, inquiry.found()->kind, std::move(request)};
  const bool has_files = fs::exists(folder / run_file_name, error) || fs::exists(folder / request_file_name, error);
  if (is_folder ? has_files : real.extension() == ".h5") return FoundRun{folder, RunKind::sweep, std::move(request)};
  return std::nullopt;
}

const RunMark* mark_at(const fs::path& given) {
  try {
    const auto found = identify(given);
    return found ? &mark_of(found->kind) : nullptr;
  } catch (const InvalidArgument&) {
    return nullptr;
  }
}

bool is_run_of(const fs::path& given, RunKind kind) {
  const RunMark* const mark = mark_at(given);
  return mark != nullptr && mark->kind == kind;
}

void refuse_other_than_sweep(const fs::path& given) {
  const auto found = identify(given);
  if (!found) return;
  const RunMark& mark = mark_of(found->kind);
  CHECK(mark.instead_of_sweep.empty(), "{}: is {}; {}", printable(given.string()), mark.words, mark.instead_of_sweep);
}

}  // namespace gainlens::runfile
