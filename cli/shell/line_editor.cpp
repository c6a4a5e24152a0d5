#include "cli/shell/line_editor.hpp"

#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
  std::string hint;  // shown at the right margin
  bool interrupted = false;

  static State& of(EditLine* edit) {
    State* state = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &state);
    return *state;
  }
  static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }

  // Called at each redraw. Shows a hint only if it fits beside the line; libedit would wrap it.
  static char* show_hint(EditLine* edit) {
    auto& state = of(edit);
    const LineInfo* line = ::el_line(edit);
    const std::string_view text(line->buffer, static_cast<std::size_t>(line->lastchar - line->buffer));
    state.hint = hint_for(text);
    int columns = 80;
    ::el_get(edit, EL_GETTC, "co", &columns);
    const auto room = columns - static_cast<int>(text.size() + state.prompt.size()) - 3;
    if (state.hint.empty() || static_cast<int>(state.hint.size()) > room)
      state.hint.clear();
    else
      state.hint = std::string(1, no_width) + "\x1b[90m" + no_width + state.hint + no_width + "\x1b[0m" +
                   no_width + " ";  // such a sequence is drawn with the next character
    return state.hint.data();
  }

  // libedit's own insert draws only the character, but the hint needs a redraw of the whole line.
  static unsigned char insert(EditLine* edit, int key) {
    const char text[] = {static_cast<char>(key), '\0'};
    return ::el_insertstr(edit, text) == 0 ? CC_REFRESH : CC_ERROR;
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
  ::el_set(state.edit, EL_RPROMPT_ESC, &State::show_hint, no_width);
  ::el_set(state.edit, EL_EDITOR, "emacs");
  ::el_set(state.edit, EL_SIGNAL, 1);
  ::el_set(state.edit, EL_HIST, ::history, state.history);
  ::el_set(state.edit, EL_ADDFN, "weir-insert", "insert and show the hint", &State::insert);
  ::el_set(state.edit, EL_ADDFN, "weir-complete", "complete a command", &State::complete);
  ::el_set(state.edit, EL_ADDFN, "weir-interrupt", "give up the line", &State::interrupt);
  for (char key = ' '; key <= '~'; ++key) {
    if (key == '-') continue;  // bind takes it for an option; libedit's insert works, but shows no hint
    const std::string name = key == '^' || key == '\\' ? std::string("\\") + key : std::string(1, key);
    ::el_set(state.edit, EL_BIND, name.c_str(), "weir-insert", nullptr);
  }
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

void LineEditor::remember(const std::string& line) {
  ::history(state_->history, &state_->event, H_ENTER, line.c_str());
}

}  // namespace weir::shell
