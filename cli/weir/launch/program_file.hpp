// Finds a program as a shell does, and says whether the dynamic linker will look for its libraries where we
// say.
#pragma once

#include <expected>
#include <string>

namespace weir::command {

struct NotRunnable {
  int status;        // as a shell exits: 127 not found, 126 found and not executable
  std::string what;  // fit to show
};

// The file that execvp would run.
std::expected<std::string, NotRunnable> find_program(const std::string& name, const char* path_variable);

// Empty if LD_PRELOAD and LD_LIBRARY_PATH reach the program; else why not. A script is judged by its
// interpreter.
std::string why_libraries_cannot_be_replaced(const std::string& file);

// It has a DT_RPATH, in which the dynamic linker looks before LD_LIBRARY_PATH. A script's interpreter is not
// looked at.
bool looks_in_its_own_path_first(const std::string& file);

}  // namespace weir::command
