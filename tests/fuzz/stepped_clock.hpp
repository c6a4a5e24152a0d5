// A steady clock that advances by one step whenever it is read, and otherwise when it is told to: code with
// deadlines does the same in each run of an input, and seconds take no time.
//
// A program that links stepped_clock.cpp has no other steady_clock, and its io_contexts read this one
// whenever they are polled. Do not run() them: they would wait by the kernel's clock. Threading: one thread.
#pragma once

#include <chrono>

namespace weir::fuzz {

void restart_clock();
void pass(std::chrono::microseconds time);

}  // namespace weir::fuzz
