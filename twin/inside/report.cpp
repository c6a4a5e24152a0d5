// The stack of a thread that waits, and the state of its process's NIC. It is asked while everything stands,
// and the run ends behind it: so a library that holds a lock meanwhile costs the report, not the run.
#include <dlfcn.h>
#include <elf.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "twin/inside/baton.hpp"

namespace weir::twin {
namespace {

constexpr unsigned max_frames = 48;

link::fabric::DescribeNic describe_nic = nullptr;

class Lines {
 public:
  explicit Lines(std::span<char> to) : left_(to) { left_[0] = 0; }
  template <class... Values>
  void add(const char* format, Values... values) {
    const int bytes = std::snprintf(left_.data(), left_.size(), format, values...);
    advance(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  }
  void add_nic(link::fabric::DescribeNic describe) {
    advance(describe(left_.data(), left_.size() - 1));
    left_[0] = 0;
  }

 private:
  void advance(std::size_t bytes) { left_ = left_.subspan(std::min(bytes, left_.size() - 1)); }
  std::span<char> left_;
};

struct Walk {
  Lines& lines;
  const void* own_module;
  unsigned frames = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* given) {
  Walk& walk = *static_cast<Walk*>(given);
  int before_instruction = 0;
  const std::uintptr_t at = _Unwind_GetIPInfo(context, &before_instruction);
  if (at == 0 || walk.frames == max_frames) return _URC_END_OF_STACK;
  // A return address is behind its call, which may be the last instruction of its line.
  const std::uintptr_t code = before_instruction != 0 ? at : at - 1;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(code), &info) == 0 || info.dli_fbase == nullptr)
    return _URC_NO_REASON;
  if (info.dli_fbase == walk.own_module) return _URC_NO_REASON;
  const bool fixed = static_cast<const Elf64_Ehdr*>(info.dli_fbase)->e_type == ET_EXEC;
  const std::uintptr_t base = fixed ? 0 : reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  walk.lines.add("code %s 0x%lx %s\n", info.dli_fname != nullptr ? info.dli_fname : "?",
                 static_cast<unsigned long>(code - base), info.dli_sname != nullptr ? info.dli_sname : "?");
  ++walk.frames;
  return _URC_NO_REASON;
}

}  // namespace

void describe_nic_with(link::fabric::DescribeNic describe) { describe_nic = describe; }

void write_report() {
  Lines lines(arena().report);
  Dl_info own{};
  (void)::dladdr(reinterpret_cast<const void*>(&write_report), &own);
  Walk walk{.lines = lines, .own_module = own.dli_fbase};
  _Unwind_Backtrace(add_frame, &walk);
  if (arena().report_wanted == link::fabric::Report::stack_and_nic && describe_nic != nullptr)
    lines.add_nic(describe_nic);
}

}  // namespace weir::twin
