// Memory windows: parts of registered regions under keys of their own, bound and invalidated by work requests
// instead of registrations (IBA 10.6.7, 11.2.8).
//
// A bound window is an entry of the protection table like any other, so the initiator's check of an rkey has
// only one special case for windows: a type 2 window answers through one queue pair only, and may since have
// been invalidated by that queue pair's own initiator (segment_layout.hpp: invalidated). A key's upper 24
// bits belong to the window for life; the lower eight differ from bind to bind, so that old keys stay dead.
//
// A region with windows bound in it cannot be deregistered. Threading: all functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "rnic/memory/protection_table.hpp"
#include "rnic/memory/segment.hpp"

namespace weir::rnic {

enum class WindowType : std::uint8_t {
  type1 = 1,  // may be bound again at any time; answers through every queue pair of its domain
  type2 = 2   // may be bound only while unbound; answers through the queue pair that bound it (2B)
};

class WindowTable {
 public:
  WindowTable(ProtectionTable& table, Segment& segment) : table_(table), segment_(segment) {}

  // Its first key, which gives access to nothing; nullopt when there are max_mws windows.
  std::optional<std::uint32_t> allocate(WindowType, std::uint32_t pd);
  // Unbinds and forgets. The caller drains initiators, then has the table release the key.
  void forget_window(std::uint32_t key);

  struct Bind {
    std::uint32_t key = 0;   // the new one
    std::uint32_t lkey = 0;  // of the region; 0 with length 0: bind to nothing
    std::uint32_t access = 0;
    std::uint64_t addr = 0, length = 0;
  };
  enum class Outcome : std::uint8_t {
    refused,  // a memory management operation error; the window is unchanged
    bound,    // it gave access to nothing before
    moved     // an initiator may still use what it gave access to before
  };
  Outcome bind(const Bind&, Qpn by, std::uint32_t pd);
  // IBV_WR_LOCAL_INV: by the queue pair that the window is bound to.
  bool invalidate(std::uint32_t key, Qpn by);
  // The owner's half of a SEND_WITH_INVALIDATE, called when it polls the SEND.
  void finish_invalidate(std::uint32_t key, Qpn by);
  // A queue pair goes away, and its type 2 windows with it.
  void forget(Qpn);

  // Whether the key belongs, or once belonged, to a window that is still allocated, and that lies or lay in
  // the region.
  bool lies_in(std::uint32_t key, std::uint32_t lkey) const;
  bool in_use(std::uint32_t lkey) const;  // some window lies in that region

 private:
  struct Window {
    WindowType type{};
    std::uint32_t pd = 0;
    std::uint32_t key = 0;     // 0: not bound
    std::uint32_t region = 0;  // lkey, also of the last binding
    bool travelled = false;    // it was bound in more than one region
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
  std::map<std::uint32_t, std::uint32_t> holders_;  // QPN: type 2 windows bound to it
};

}  // namespace weir::rnic
