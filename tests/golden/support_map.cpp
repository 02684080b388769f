#include "golden/support_map.h"

#include "cli/application.h"
#include "core/check.h"
#include "core/json.h"
#include "formats/tensor_file.h"
#include "golden/golden.h"
#include "golden/relative_error.h"
#include "golden/tokenized_copy.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/families/family.h"
#include "runfile/run_reader.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"
#include "tokenizers/tokenizer.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include <unistd.h>

namespace gainlens::golden {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view with_depth = "sweep --depth-precision";
constexpr std::string_view with_training = "train finetune";
constexpr std::string_view commands[] = {"inspect",   "sweep",     "capture",        "look",        "generate",
                                         "intervene", "gate-arms", "inactive-heads", with_training, with_depth};
constexpr double of_stored_float = 1.2e-7;  // look keeps the numbers of a head in float32
constexpr double of_six_digits = 1e-5;      // of a loss in history.csv, relative, with what float32 adds
constexpr double of_change = 2e-5;          // of the difference of two losses in float32, nats
constexpr std::array dtypes = {at::kFloat, at::kDouble, at::kBFloat16};

/// Sends a stream of this process to a file for as long as it lives.
class Redirected {
 public:
  Redirected(std::FILE* stream, const std::filesystem::path& file) : stream_(stream), kept_(::dup(::fileno(stream))) {
    std::fflush(stream_);
    std::FILE* const opened = std::fopen(file.c_str(), "w");
    ASSERT(opened != nullptr && kept_ >= 0, "cannot write {}", file.string());
    ::dup2(::fileno(opened), ::fileno(stream_));
    std::fclose(opened);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  ~Redirected() {
    std::fflush(stream_);
    ::dup2(kept_, ::fileno(stream_));
    ::close(kept_);
  }

 private:
  std::FILE* stream_;
  int kept_;
};

struct Ran {
  int code = 0;
  std::string out, error;
};

/// One call of the program, in this process.
Ran run(const Words& words, const std::filesystem::path& folder) {
  std::vector<const char*> arguments{"gainlens"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  for (const char* more : {"--quiet", "--threads", "1"}) arguments.push_back(more);
  Ran ran;
  {
    const Redirected out(stdout, folder / "out"), error(stderr, folder / "error");
    ran.code = cli::run_application(static_cast<int>(arguments.size()), arguments.data());
  }
  ran.out = read_text_file(folder / "out", 64 << 20);
  ran.error = read_text_file(folder / "error", 1 << 20);
  return ran;
}

/// The logits [position, id] that capture has written.
at::Tensor stored_logits(const std::string& file, at::ScalarType dtype) {
  const auto stored = formats::TensorFile::open(file);
  const formats::TensorEntry& entry = stored.at("hook_logits");
  at::Tensor logits = at::empty(entry.shape, dtype);
  std::copy(entry.bytes.begin(), entry.bytes.end(), static_cast<std::byte*>(logits.mutable_data_ptr()));
  return logits.squeeze(0).to(at::kDouble);
}

/// Writes ids for --tokens.
std::string ids_file(const std::filesystem::path& file, const at::Tensor& tokens) {
  const std::int64_t* const first = tokens.const_data_ptr<std::int64_t>();
  return testing::write_file(
      file, fmt::format("[{}]", fmt::join(std::vector<std::int64_t>(first, first + tokens.numel()), ",")));
}

/// A golden, with what is asked of it.
struct Subject {
  Golden golden;
  const models::Family* family = nullptr;
  bool gguf = false;
  Json intervention;  ///< of family_interventions.json; null: there is none
};

/// One of the subjects in one dtype.
class Trial {
 public:
  Trial(const Subject& subject, at::ScalarType dtype, SupportMap& map)
      : subject_(subject), dtype_(dtype), map_(map), path_(subject.golden.checkpoint->string()) {}

  void inspect();
  void sweep_and_depth();
  void capture();
  void look();
  void generate();
  void intervene();
  void gate_arms();
  /// @param scores  folder of a sweep of the same model, whose scores every dtype takes
  void inactive_heads(const std::filesystem::path& scores);
  void finetune();

  /// Of commands whose numbers the reference does not have: what they gave.
  std::map<std::string_view, at::Tensor> numbers;
  const std::map<std::string_view, at::Tensor>* wide = nullptr;  ///< the same in float64

 private:
  bool rounded() const { return dtype_ == at::kBFloat16; }
  Over over() const { return rounded() ? Over::root_mean_square : Over::largest; }

  std::string ids(const at::Tensor& tokens, const char* name = "ids.json") const {
    return ids_file(folder_.path() / name, tokens);
  }

  /// Runs a command; its outcome if it was not done.
  std::optional<Ran> done(std::string_view command, Words words) {
    if (command != "inspect") {
      words.insert(words.end(), {"--dtype", std::string(models::dtype_name(dtype_))});
    }
    Ran ran = run(words, folder_.path());
    if (ran.code == 0) return ran;
    const bool one_line = std::count(ran.error.begin(), ran.error.end(), '\n') == 1;
    if (ran.code != 2 || !one_line) {
      complain(command, fmt::format("exit code {}: {}", ran.code, ran.error));
      return std::nullopt;
    }
    set(command, Support::refused);
    const std::size_t begin = std::string_view("gainlens: error: ").size();
    std::string reason = ran.error.substr(begin, ran.error.size() - 1 - begin);
    for (const std::string& model : {path_, tokenized_.string()}) {
      if (const std::size_t at = reason.find(model); !model.empty() && at != std::string::npos)
        reason.replace(at, model.size(), "MODEL");
    }
    map_.refusals[{std::string(command), reason}].insert(std::string(subject_.family->title));
    return std::nullopt;
  }

  void set(std::string_view command, Support state) {
    map_.states[{std::string(subject_.family->name), std::string(command), subject_.gguf,
                 std::string(models::dtype_name(dtype_))}] = state;
  }
  void complain(std::string_view command, const std::string& what) {
    map_.complaints.push_back(
        fmt::format("{}, {}, {}: {}", command, subject_.golden.name, models::dtype_name(dtype_), what));
  }
  /// Keeps the state of a command whose numbers have this error.
  void judge(std::string_view command, double error, double allowed) {
    double& worst = map_.worst[fmt::format("{} {}", command, models::dtype_name(dtype_))];
    worst = std::max(worst, error / allowed);
    if (!(error <= allowed)) complain(command, fmt::format("error {:.3g}; {:.3g} is allowed", error, allowed));
    Support& state = map_.states[{std::string(subject_.family->name), std::string(command), subject_.gguf,
                                  std::string(models::dtype_name(dtype_))}];
    state = rounded() ? Support::lower : Support::exact;
  }
  double allowed(const std::string& what) const { return tolerance(subject_.golden, dtype_, what); }

  /// The error of n_eff [layer, head, query] at the stored positions among the first `queries`.
  double n_eff_error(const at::Tensor& found, std::int64_t queries) const {
    const at::Tensor& positions = subject_.golden.query_positions;
    const at::Tensor kept = positions.lt(queries).nonzero().squeeze(1);
    const at::Tensor expected = subject_.golden.expected.at("statistics.n_eff").index_select(2, kept);
    return relative_error(found.index_select(2, positions.index_select(0, kept)), expected, 1e-3, over());
  }
  /// Keeps numbers that the reference does not have.
  /// @returns  those of the own run in float64
  at::Tensor wide_of(std::string_view command, const std::vector<double>& found) {
    numbers[command] = at::tensor(found, at::kDouble);
    return wide != nullptr && wide->contains(command) ? wide->at(command) : numbers[command];
  }
  void judge_by_wide(std::string_view command, const std::vector<double>& found) {
    const at::Tensor expected = wide_of(command, found);
    judge(command, relative_error(numbers[command], expected, 1e-3, over()), rounded() ? 0.1 : 1e-3);
  }
  /// Nats of a loss that the reference, or the own logits, give.
  double of_loss() const { return rounded() ? 0.1 : dtype_ == at::kFloat ? 1e-5 : allowed("logits"); }
  void measure_depth(const std::filesystem::path& out);
  /// The logits [position, id] of capture; empty if it was not done.
  std::optional<at::Tensor> captured(const at::Tensor& tokens);

  const Subject& subject_;
  at::ScalarType dtype_;
  SupportMap& map_;
  std::string path_;
  std::filesystem::path tokenized_;  // the checkpoint of finetune(); empty before
  testing::TemporaryFolder folder_;
};

void Trial::inspect() {
  const auto ran = done("inspect", {"inspect", path_, "--json"});
  if (!ran) return;
  const Json json = Json::parse(ran->out);
  if (json.at("family") != subject_.family->name) complain("inspect", "another family");
  set("inspect", Support::exact);
}

void Trial::sweep_and_depth() {
  const std::int64_t length = subject_.golden.tokens.size(0);
  const std::filesystem::path out = folder_.path() / "run";
  const Words words = {"sweep",       path_,
                       "--tokens",    ids(subject_.golden.tokens),
                       "--lengths",   std::to_string(length),
                       "--samples",   "1",
                       "--per-query", "--out",
                       out.string()};
  Words more = words;
  more.emplace_back("--depth-precision");
  const bool depth = done(with_depth, more).has_value();
  if (!depth && !done("sweep", words)) return;
  const runfile::Array found = runfile::RunReader::open(out).read(fmt::format("queries/{}/n_eff", length));
  const at::Tensor n_eff = at::tensor(found.values, at::kDouble).view(found.shape).squeeze(0);
  judge("sweep", n_eff_error(n_eff, length), allowed("statistics.n_eff"));
  if (depth) measure_depth(out);
}

void Trial::measure_depth(const std::filesystem::path& out) {
  std::vector<double> found;
  const Json json = read_json_file(out / "depth.json", 16 << 20);
  for (const Json& layer : json.at("chunks").at(0).at("layers")) {
    for (const auto& [reading, starts] : layer.at("gain").items()) {
      for (const Json& shares : starts) {
        for (const Json& gain : shares) found.push_back(gain.get<double>());
      }
    }
  }
  judge_by_wide(with_depth, found);
}

std::optional<at::Tensor> Trial::captured(const at::Tensor& tokens) {
  const std::string file = folder_.path() / fmt::format("logits-{}.safetensors", tokens.size(0));
  if (!done("capture", {"capture", path_, "--tokens", ids(tokens), "--hooks", "hook_logits", "--out", file}))
    return std::nullopt;
  return stored_logits(file, dtype_);
}

void Trial::capture() {
  const auto logits = captured(subject_.golden.tokens);
  if (!logits) return;
  const at::Tensor found = logits->index_select(0, subject_.golden.logit_positions);
  judge("capture", relative_error(found, subject_.golden.expected.at("logits"), 1, over()), allowed("logits"));
}

void Trial::look() {
  // The last token is one of those whose logits are stored.
  const std::int64_t stored = subject_.golden.logit_positions.size(0) - 1;
  const std::int64_t length = subject_.golden.logit_positions[stored].item<std::int64_t>() + 1;
  const auto ran =
      done("look", {"look", path_, "--tokens", ids(subject_.golden.tokens.slice(0, 0, length).contiguous()), "--json"});
  if (!ran) return;
  const Json json = Json::parse(ran->out);
  std::vector<double> n_eff;
  for (const Json& head : json.at("heads")) {
    for (const Json& number : head.at("n_eff")) n_eff.push_back(number.get<double>());
  }
  const at::Tensor& expected = subject_.golden.expected.at("statistics.n_eff");
  const at::Tensor found = at::tensor(n_eff, at::kDouble).view({expected.size(0), expected.size(1), length});
  const at::Tensor logits = subject_.golden.expected.at("logits")[stored];
  std::vector<double> next, next_expected;
  for (const Json& token : json.at("next")) {
    next.push_back(token.at("logit").get<double>());
    next_expected.push_back(logits[token.at("id").get<std::int64_t>()].item<double>());
  }
  // A handful of the largest logits, which bfloat16 rounds most.
  const double of_logits = allowed("logits") * (rounded() ? 4 : 1);
  const double error = relative_error(at::tensor(next, at::kDouble), at::tensor(next_expected, at::kDouble), 1, over());
  judge(
      "look",
      std::max(error / of_logits, n_eff_error(found, length) / std::max(allowed("statistics.n_eff"), of_stored_float)),
      1);
}

/// The first new token is compared with the reference. Those after it, which come from the cache, are compared with a
/// pass over the whole text.
void Trial::generate() {
  constexpr std::int64_t count = 3;
  const std::int64_t stored = subject_.golden.logit_positions.size(0) / 2;
  const std::int64_t length = subject_.golden.logit_positions[stored].item<std::int64_t>() + 1;
  const at::Tensor prompt = subject_.golden.tokens.slice(0, 0, length).contiguous();
  const auto ran = done("generate", {"generate", path_, "--tokens", ids(prompt), "--max-new", std::to_string(count),
                                     "--ignore-eos", "--json"});
  if (!ran) return;
  const Json json = Json::parse(ran->out);
  const std::vector<std::int64_t> added = json.at("tokens");
  const std::vector<double> found = json.at("logprobs");
  const auto whole = captured(at::cat({prompt, at::tensor(added)}));
  if (!whole || std::ssize(added) != count) return complain("generate", "another number of tokens");
  at::Tensor rows = whole->slice(0, length - 1, length - 1 + count).clone();
  rows[0].copy_(subject_.golden.expected.at("logits")[stored]);
  const at::Tensor expected = rows.log_softmax(-1).gather(1, at::tensor(added).unsqueeze(1)).squeeze(1);
  // A logit and the log-sum-exp may both be off.
  const double error = (at::tensor(found, at::kDouble) - expected).abs().max().item<double>() / 2;
  judge("generate", error / rows.abs().max().item<double>(), allowed("logits"));
}

void Trial::intervene() {
  if (subject_.intervention.is_null()) return;
  const std::vector<std::int64_t> tokens = subject_.intervention.at("tokens");
  const Json& results = subject_.intervention.at("results");
  std::string text;
  for (const auto& [name, result] : results.items()) {
    if (name.ends_with("=zero")) text = name;
  }
  const auto ran = done("intervene", {"intervene", path_, "--tokens", ids(at::tensor(tokens)), "--lengths",
                                      std::to_string(tokens.size()), "--samples", "1", "--set", text, "--json"});
  if (!ran) return;
  const double nll = Json::parse(ran->out).at("arms").at(0).at("nll");
  const double error = std::abs(nll - results.at(text).at("nll").get<double>());
  judge("intervene", error, of_loss());
}

/// The native arm is compared with the own logits, which capture() has compared with the reference; the other arms with
/// those in float64.
void Trial::gate_arms() {
  constexpr std::int64_t length = 16, targets = 4;
  const at::Tensor tokens = subject_.golden.tokens.slice(0, 0, length).contiguous();
  const std::string calibration =
      ids(subject_.golden.tokens.slice(0, length, 3 * length).flip(0).contiguous(), "calibration.json");
  const auto ran =
      done("gate-arms", {"gate-arms", path_, "--tokens", ids(tokens), "--calibration", calibration, "--trained-length",
                         std::to_string(length), "--contexts", "8,16", "--targets", std::to_string(targets),
                         "--samples", "1", "--calibration-samples", "1", "--few-documents", "--json"});
  if (!ran) return;
  const auto logits = captured(tokens);
  if (!logits) return complain("gate-arms", "no logits");
  const at::Tensor losses = -logits->slice(0, length - targets - 1, length - 1)
                                 .log_softmax(-1)
                                 .gather(1, tokens.slice(0, length - targets).unsqueeze(1));
  std::vector<double> found;
  const Json json = Json::parse(ran->out);
  for (const Json& arm : json.at("arms")) {
    for (const Json& context : arm.at("contexts")) found.push_back(context.at("nll").get<double>());
  }
  judge_by_wide("gate-arms", found);
  judge("gate-arms", std::abs(found.at(1) - losses.mean().item<double>()), of_loss());
}

double loss_of(const Json& result) {
  return result.at("nll").get<double>();
}

/// The loss, and that without the head that the reference has set to zero alone; the curves of the scores against those
/// in float64.
void Trial::inactive_heads(const std::filesystem::path& scores) {
  if (subject_.intervention.is_null()) return;
  const std::vector<std::int64_t> tokens = subject_.intervention.at("tokens");
  const std::filesystem::path out = folder_.path() / "inactive";
  const auto ran = done("inactive-heads",
                        {"inactive-heads", path_, "--run", scores, "--tokens", ids(at::tensor(tokens)), "--lengths",
                         std::to_string(tokens.size()), "--samples", "1", "--draws", "1", "--out", out, "--json"});
  if (!ran) return;
  std::map<std::string, std::vector<double>> by_score;  // their order in the output is that of the numbers
  const Json json = Json::parse(ran->out);
  for (const Json& score : json.at("scores"))
    by_score[score.at("score")] = score.at("changes").get<std::vector<double>>();
  std::vector<double> found;
  for (const auto& [score, changes] : by_score) found.insert(found.end(), changes.begin(), changes.end());
  const at::Tensor expected = wide_of("inactive-heads", found);
  judge("inactive-heads", (numbers["inactive-heads"] - expected).abs().max().item<double>(),
        rounded() ? 0.1 : of_change);
  const Json& results = subject_.intervention.at("results");
  const Json kept = read_json_file(out / "intervene.json", 16 << 20);
  judge("inactive-heads", std::abs(kept.at("native").at(0).get<double>() - loss_of(results.at("native"))), of_loss());
  for (const Json& arm : kept.at("arms")) {
    const std::string text = arm.at("intervention");
    if (!results.contains(text)) continue;
    judge("inactive-heads", std::abs(loss_of(arm.at("documents").at(0)) - loss_of(results.at(text))), of_loss());
  }
}

/// The loss of one step, before its update, against logits in float64.
void Trial::finetune() {
  const Json described = Json::parse(run({"inspect", path_, "--json"}, folder_.path()).out);
  const testing::TemporaryFolder copy;
  tokenized_ =
      tokenized_copy(subject_.golden, described.at("vocabulary").get<std::int64_t>(), copy.path() / "checkpoint");
  const auto questions = [&](const char* name, const std::string& lines) {
    return testing::write_file(folder_.path() / name, lines);
  };
  const std::string prompt = "FOUR FIVE", answer = "SIX SEVEN";
  const std::string row = questions("row.jsonl", Json{{"prompt", prompt}, {"answers", {answer}}}.dump());
  const std::string test = questions("test.jsonl", R"({"prompt": "ONE TWO", "answers": ["THREE"]})"
                                                   "\n"
                                                   R"({"prompt": "TWO THREE", "answers": ["FOUR"]})");
  const std::filesystem::path out = folder_.path() / "tuned";
  const auto ran = done(with_training, {"train",
                                        "finetune",
                                        tokenized_.string(),
                                        "--task",
                                        row,
                                        "--test",
                                        test,
                                        "--train-rows",
                                        "1",
                                        "--validation-rows",
                                        "1",
                                        "--arm",
                                        "sft",
                                        "--epochs",
                                        "1",
                                        "--batch",
                                        "1",
                                        "--learning-rate",
                                        "1e-3",
                                        "--max-new",
                                        "1",
                                        "--out",
                                        out.string()});
  if (!ran) return;
  const auto tokenizer = tokenizers::open_tokenizer(tokenized_);
  const auto read = tokenizer->encode(prompt);
  auto whole = tokenizer->encode(prompt + " " + answer);
  whole.push_back(tokenized_end);
  const at::Tensor tokens = at::tensor(std::vector<std::int64_t>(whole.begin(), whole.end()));
  const std::string file = folder_.path() / "row.safetensors";
  const Ran capture =
      run({"capture", path_, "--tokens", ids(tokens), "--hooks", "hook_logits", "--dtype", "float64", "--out", file},
          folder_.path());
  if (capture.code != 0) return complain(with_training, capture.error);
  const at::Tensor losses =
      -stored_logits(file, at::kDouble).log_softmax(-1).slice(0, 0, -1).gather(1, tokens.slice(0, 1).unsqueeze(1));
  const double expected = losses.slice(0, std::ssize(read) - 1).mean().item<double>();
  const std::string history = read_text_file(out / "sft/np0/seed-0/training/history.csv", 1 << 20);
  const std::size_t loss = history.find(',', history.find('\n')) + 1;  // second column of the first row
  judge(with_training, std::abs(std::stod(history.substr(loss)) / expected - 1), rounded() ? 0.1 : of_six_digits);
}

/// For each family and format a golden: those with interventions of the reference come first.
std::vector<Subject> subjects() {
  const Json interventions =
      read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/family_interventions.json", 4 << 20).at("checkpoints");
  const Json twins = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/gguf/twins.json");
  const auto folder_of = [&](const std::string& name) {
    return twins.contains(name) ? twins.at(name).get<std::string>() : name;
  };
  const auto rank = [&](const std::string& name) {
    return std::pair(!interventions.contains(folder_of(name)), folder_of(name));
  };
  std::map<std::pair<std::string, bool>, std::string> chosen;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    if (!golden.checkpoint) continue;
    std::string& kept = chosen[{models::read_decoder_config(*golden.checkpoint).family, name.ends_with(".gguf")}];
    if (kept.empty() || rank(name) < rank(kept)) kept = name;
  }
  std::vector<Subject> list;
  for (const auto& [key, name] : chosen) {
    const std::string folder = folder_of(name);
    list.push_back({read_golden(name), &models::family_named(key.first, name), key.second,
                    interventions.contains(folder) ? interventions.at(folder) : Json()});
  }
  return list;
}

std::string_view symbol(Support state) {
  switch (state) {
    case Support::untested:
      return "·";
    case Support::refused:
      return "×";
    case Support::exact:
      return "=";
    case Support::lower:
      return "≈";
  }
  return "";
}

/// A sweep in float64, on another text than that of the interventions.
void sweep_for_scores(const Subject& subject, const std::filesystem::path& out) {
  const testing::TemporaryFolder folder;
  const std::string ids = ids_file(folder.path() / "ids.json", subject.golden.tokens.slice(0, 0, 32).contiguous());
  const Ran ran = run({"sweep", subject.golden.checkpoint->string(), "--tokens", ids, "--lengths", "16", "--samples",
                       "2", "--dtype", "float64", "--out", out},
                      folder.path());
  ASSERT(ran.code == 0, "{}", ran.error);
}

}  // namespace

SupportMap measure_support() {
  SupportMap map;
  for (const Subject& subject : subjects()) {
    std::optional<std::map<std::string_view, at::Tensor>> wide;
    const testing::TemporaryFolder folder;
    const std::filesystem::path scores = folder.path() / "scores";
    sweep_for_scores(subject, scores);
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
      Trial trial(subject, dtype, map);
      if (wide) trial.wide = &*wide;
      trial.inspect();
      trial.capture();
      trial.look();
      trial.generate();
      trial.intervene();
      trial.gate_arms();
      trial.inactive_heads(scores);
      trial.finetune();
      trial.sweep_and_depth();
      if (dtype == at::kDouble) wide = trial.numbers;
    }
  }
  return map;
}

std::string support_section(const SupportMap& map) {
  std::string text = fmt::format("{}\n", support_heading);
  text += R"(
A test lets each command compute a small checkpoint of each family, and compares it with the reference: logits, n_eff of
every query, losses, the first token of `generate`. Numbers that the reference does not have are compared with the same
in float64. This table is what the test saw. For each command it has three signs, in float32, float64 and bfloat16, for
safetensors; after the stroke the same for GGUF. Families with the same signs share a row.

- `=` exact: within the tolerances above; numbers that the reference does not have within 1e-3, changes of a loss within
  2e-5 nats, a loss of training within 1e-5 of itself
- `≈` lower precision: within those of bfloat16. There the largest logits may have four times the error of all logits; a
  loss, and a number that the reference does not have, 0.1
- `×` refused, with one line that says why
- `·` untested: no checkpoint in this format, or no number to compare with

)";
  text += fmt::format("| families | `{}` |\n| --- |", fmt::join(commands, "` | `"));
  for (std::size_t i = 0; i < std::size(commands); ++i) text += " --- |";
  text += '\n';
  // Families with the same signs share a row. It stands where the first of them would.
  std::vector<std::pair<std::string, std::vector<std::string_view>>> rows;
  for (const models::Family& family : models::families()) {
    std::string signs;
    for (const std::string_view command : commands) {
      for (const bool gguf : {false, true}) {
        signs += gguf ? " / " : " ";
        for (const at::ScalarType dtype : dtypes) {
          const auto found = map.states.find(
              {std::string(family.name), std::string(command), gguf, std::string(models::dtype_name(dtype))});
          signs += symbol(found == map.states.end() ? Support::untested : found->second);
        }
      }
      signs += " |";
    }
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first == signs; });
    if (same == rows.end()) {
      rows.push_back({signs, {family.title}});
    } else {
      same->second.push_back(family.title);
    }
  }
  for (const auto& [signs, titles] : rows) text += fmt::format("| {} |{}\n", fmt::join(titles, "; "), signs);
  text += "\nThe refusals, in the program's words:\n\n| command | words | families |\n| --- | --- | --- |\n";
  for (const auto& [refusal, families] : map.refusals) {
    const bool all = families.size() == models::families().size();
    text += fmt::format("| `{}` | {} | {} |\n", refusal.first, refusal.second,
                        all ? "all" : fmt::format("{}", fmt::join(families, "; ")));
  }
  return text;
}

}  // namespace gainlens::golden
