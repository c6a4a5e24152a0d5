#include "cli/shell/line_editor.hpp"

#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cwchar>
#include <string_view>
#include <utility>

#include "cli/shell/hints.hpp"

namespace weir::shell {
namespace {

// libedit counts the prompt's characters; text between two of these has no width.
constexpr char no_width = '\1';
constexpr int remembered_lines = 1000;

}  // namespace

struct LineEditor::State {
  EditLine* edit = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string history_file;
  std::string prompt;
  bool hints = true;
  bool interrupted = false;

  static State& of(EditLine* edit) {
    State* state = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &state);
    return *state;
  }
  static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }

  // What may be shown behind the cursor of the line as it is.
  std::string hint_beside(const LineInfo& line) const {
    if (!hints || line.cursor != line.lastchar) return {};
    const std::string_view text(line.buffer, static_cast<std::size_t>(line.lastchar - line.buffer));
    std::string hint = hint_for(text);
    if (hint.empty()) return {};
    if (!text.ends_with(' ')) hint.insert(0, " ");
    int columns = 80;
    ::el_get(edit, EL_GETTC, "co", &columns);
    const auto width = static_cast<std::size_t>(std::max(columns, 1));
    // The last column stays free: a cursor there is in no certain place.
    hint.resize(std::min(hint.size(), width - 1 - (prompt.size() + text.size()) % width));
    return hint;
  }

  // libedit draws the line and then waits here for a key. The hint is there only while it waits, so libedit
  // need not know of it, and a line that has been typed stays without it.
  static int read_key(EditLine* edit, wchar_t* key) {
    const State& state = of(edit);
    const std::string hint = state.hint_beside(*::el_line(edit));
    if (!hint.empty()) std::printf("\x1b[90m%s\x1b[0m\x1b[%zuD", hint.c_str(), hint.size());
    std::fflush(stdout);
    const int got = read_character(edit, key);
    if (!hint.empty()) std::fputs("\x1b[K", stdout);
    std::fflush(stdout);
    return got;
  }

  // 1, 0 at the end, -1: standard input failed.
  static int read_character(EditLine* edit, wchar_t* key) {
    std::mbstate_t state{};
    for (;;) {
      char byte = 0;
      const auto got = ::read(STDIN_FILENO, &byte, 1);
      if (got < 0 && errno == EINTR) {  // the window has another size, or the program goes on after Ctrl-Z
        ::el_set(edit, EL_REFRESH);
        continue;
      }
      if (got <= 0) return static_cast<int>(got);
      const auto length = std::mbrtowc(key, &byte, 1, &state);
      if (length == static_cast<std::size_t>(-2)) continue;  // not all of it yet
      if (length == static_cast<std::size_t>(-1)) *key = static_cast<unsigned char>(byte);
      return 1;
    }
  }

  static unsigned char complete(EditLine* edit, int) {
    const LineInfo* line = ::el_line(edit);
    const std::string typed(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
    const auto names = completions_of(typed);
    if (names.empty() || typed.empty()) return CC_REFRESH_BEEP;
    std::string common = names.front();
    for (const auto& name : names)
      common.resize(static_cast<std::size_t>(std::ranges::mismatch(common, name).in1 - common.begin()));
    if (common.size() > typed.size() || names.size() == 1) {
      ::el_deletestr(edit, static_cast<int>(typed.size()));
      if (names.size() == 1) common += ' ';
      ::el_insertstr(edit, common.c_str());
      return CC_REFRESH;
    }
    std::fputs("\n", stdout);
    for (const auto& name : names) std::printf("%s  ", name.c_str());
    std::fputs("\n", stdout);
    std::fflush(stdout);
    return CC_REDISPLAY;
  }

  static unsigned char interrupt(EditLine* edit, int) {
    of(edit).interrupted = true;
    return CC_EOF;
  }
};

LineEditor::LineEditor(std::string history_file) : state_(std::make_unique<State>()) {
  auto& state = *state_;
  state.history_file = std::move(history_file);
  state.history = ::history_init();
  ::history(state.history, &state.event, H_SETSIZE, remembered_lines);
  ::history(state.history, &state.event, H_SETUNIQUE, 1);
  if (!state.history_file.empty()) ::history(state.history, &state.event, H_LOAD, state.history_file.c_str());

  state.edit = ::el_init("weir-cli", stdin, stdout, stderr);
  ::el_set(state.edit, EL_CLIENTDATA, &state);
  ::el_set(state.edit, EL_PROMPT_ESC, &State::show_prompt, no_width);
  ::el_set(state.edit, EL_GETCFN, &State::read_key);
  ::el_set(state.edit, EL_EDITOR, "emacs");
  ::el_set(state.edit, EL_SIGNAL, 1);
  ::el_set(state.edit, EL_HIST, ::history, state.history);
  ::el_set(state.edit, EL_ADDFN, "weir-complete", "complete a command", &State::complete);
  ::el_set(state.edit, EL_ADDFN, "weir-interrupt", "give up the line", &State::interrupt);
  ::el_set(state.edit, EL_BIND, "\t", "weir-complete", nullptr);
  ::el_set(state.edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  ::el_set(state.edit, EL_BIND, "\x1b[3~", "ed-delete-next-char", nullptr);
  ::el_set(state.edit, EL_BIND, "\x1b[H", "ed-move-to-beg", nullptr);
  ::el_set(state.edit, EL_BIND, "\x1b[F", "ed-move-to-end", nullptr);
  // While a line is edited Ctrl-C is a key: it leaves the program, as in redis-cli.
  ::el_set(state.edit, EL_SETTY, "-d", "-isig", nullptr);
  ::el_set(state.edit, EL_BIND, "^C", "weir-interrupt", nullptr);
}

LineEditor::~LineEditor() {
  if (!state_->history_file.empty()) {
    const auto mask = ::umask(077);  // what people type is private
    ::history(state_->history, &state_->event, H_SAVE, state_->history_file.c_str());
    ::umask(mask);
  }
  ::el_end(state_->edit);
  ::history_end(state_->history);
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  state_->prompt = prompt;
  state_->interrupted = false;
  int length = 0;
  const char* line = ::el_gets(state_->edit, &length);
  if (!line || length <= 0 || state_->interrupted) {
    std::puts("");
    return std::nullopt;
  }
  std::string_view text(line, static_cast<std::size_t>(length));
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return std::string(text);
}

void LineEditor::show_hints(bool shown) { state_->hints = shown; }

void LineEditor::remember(const std::string& line) {
  ::history(state_->history, &state_->event, H_ENTER, line.c_str());
}

}  // namespace weir::shell
