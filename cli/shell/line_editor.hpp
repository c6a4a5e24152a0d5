// A line from a terminal, with editing, history, completion of command names and hints at the right margin.
//
// On libedit: it works on a terminal only, and one editor exists at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace weir::shell {

class LineEditor {
 public:
  explicit LineEditor(std::string history_file);  // empty: history ends with the program
  ~LineEditor();

  // The next line, without its end. Nothing: the user is done (Ctrl-D, or Ctrl-C on an empty line).
  std::optional<std::string> read(const std::string& prompt);
  void remember(const std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::shell
