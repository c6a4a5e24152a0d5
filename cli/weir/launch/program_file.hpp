// Finds a program as a shell does, and checks whether the dynamic linker will look for the program's
// libraries where we tell it to.
#pragma once

#include <expected>
#include <string>

namespace weir::command {

struct NotRunnable {
  int status;        // as a shell exits: 127 not found, 126 found and not executable
  std::string what;  // to be shown to the user
};

// The file that execvp would run.
std::expected<std::string, NotRunnable> find_program(const std::string& name, const char* path_variable);

// Empty if LD_PRELOAD and LD_LIBRARY_PATH affect the program; else the reason why they do not. For a script
// its interpreter is checked.
std::string why_libraries_cannot_be_replaced(const std::string& file);

// Whether the program has a DT_RPATH, where the dynamic linker looks before LD_LIBRARY_PATH. A script's
// interpreter is not checked.
bool looks_in_its_own_path_first(const std::string& file);

}  // namespace weir::command
