// Reads a line from a terminal with editing, history, completion of commands and hints behind the cursor.
//
// Uses libedit: it works only on a terminal, and only one editor may exist at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace weir::shell {

class LineEditor {
 public:
  explicit LineEditor(std::string history_file);  // empty: the history is not saved
  ~LineEditor();

  // The next line, without its end. nullopt: the user is done (Ctrl-D, or Ctrl-C on an empty line).
  std::optional<std::string> read(const std::string& prompt);
  void remember(const std::string& line);
  void show_hints(bool shown);  // they are, unless told

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::shell
