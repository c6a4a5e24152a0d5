// A thread of ours in a program that does not know of it.
//
// The program's signal handlers never run in it: all signals are blocked but SIGSEGV and SIGBUS, because a
// fault in a copy of the program's memory ends the process while its signal is blocked.
//
// Its allocator is set up when own_thread() returns. A thread's first allocation calls munmap(), and
// libraries such as libfabric overwrite the code of munmap() when a program first registers memory: a thread
// that is inside it then crashes when it returns.
#pragma once

#include <functional>
#include <thread>

namespace weir::link {

// Throws std::system_error if the system has no more threads.
std::thread own_thread(std::function<void()> run);

}  // namespace weir::link
