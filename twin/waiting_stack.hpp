// The stack of a thread, and the state of its process's NIC, as the thread itself has written them
// (twin/inside/report), for people: with functions and lines.
#pragma once

#include <string>
#include <string_view>

namespace weir::twin {

// Lines with `indent` in front, of the innermost call first, without the C library's own calls at its end.
std::string waiting_stack(std::string_view written, std::string_view indent);

}  // namespace weir::twin
