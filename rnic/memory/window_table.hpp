// Memory windows: parts of registered regions under keys of their own, which are bound and taken back by work
// requests instead of registrations (IBA 10.6.7, 11.2.8).
//
// A bound window is an entry of the protection table like any other, so the initiator's check of an rkey
// knows nothing of windows but this: one of type 2 answers through one queue pair only, and may have been
// invalidated by that queue pair's own initiator since (segment_layout.hpp: invalidated). A key's upper 24
// bits are the window's for life; the lower eight differ from bind to bind, so that old keys stay dead.
//
// A region with windows bound in it is not deregistered. Threading: all functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "rnic/memory/protection_table.hpp"
#include "rnic/memory/segment.hpp"

namespace weir::rnic {

enum class WindowType : std::uint8_t {
  type1 = 1,  // bound again at any time; answers through every queue pair of its domain
  type2 = 2   // bound only while it is not; answers through the queue pair that bound it (2B)
};

class WindowTable {
 public:
  WindowTable(ProtectionTable& table, Segment& segment) : table_(table), segment_(segment) {}

  // Its first key, under which nothing is to be had; nullopt when there are max_mws windows.
  std::optional<std::uint32_t> allocate(WindowType, std::uint32_t pd);
  // Unbinds and forgets. The caller drains initiators, then has the table release the key.
  void forget_window(std::uint32_t key);

  struct Bind {
    std::uint32_t key = 0;   // the new one
    std::uint32_t lkey = 0;  // of the region; 0 with length 0: bind to nothing
    std::uint32_t access = 0;
    std::uint64_t addr = 0, length = 0;
  };
  // False: a memory management operation error, and the window is as before.
  bool bind(const Bind&, Qpn by, std::uint32_t pd);
  // IBV_WR_LOCAL_INV: by the queue pair that the window is bound to.
  bool invalidate(std::uint32_t key, Qpn by);
  // The owner's half of a SEND_WITH_INVALIDATE, when it polls it.
  void finish_invalidate(std::uint32_t key, Qpn by);
  // A queue pair goes: so do its windows of type 2.
  void forget(Qpn);

  // Whether the key is, or was once, that of a window which is still allocated.
  bool is_window(std::uint32_t key) const;
  bool in_use(std::uint32_t lkey) const;  // some window lies in that region

 private:
  struct Window {
    WindowType type{};
    std::uint32_t pd = 0;
    std::uint32_t key = 0;     // 0: not bound
    std::uint32_t region = 0;  // lkey
    Qpn by;
  };
  std::atomic<std::uint32_t>& invalidated(std::uint32_t key) const;
  bool bound(const Window&) const;
  bool allowed(const Bind&, const Window&, std::uint32_t pd) const;
  void unbind(Window&);

  ProtectionTable& table_;
  Segment& segment_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Window> windows_;         // by index
  std::map<std::uint32_t, std::uint32_t> regions_;  // lkey: windows bound in it
};

}  // namespace weir::rnic
