// The files of cli/completion/ as text; the build generates the definitions.
#pragma once

namespace weir::command {

extern const char* const completion_bash;
extern const char* const completion_zsh;
extern const char* const completion_fish;

}  // namespace weir::command
