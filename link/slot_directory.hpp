// The per-user directory in which the processes of one host find each other.
//
// It holds one listening unix socket a slot ("slot-0007"), a lock file ("lock"), and whatever small files and
// folders the layers above register there. Invariants:
//  1. A name "slot-*" appears only once its socket listens: it is bound under another name and hard-linked,
//     so a socket that refuses connections is always a dead process's and never a young one's.
//  2. Names are added and removed only under flock on "lock". The lock ends with its holder, killed or not.
//     A slot's number is also held as an abstract name ("weir-slot-7"), of which a network namespace has one:
//     other users and other directories of it use other numbers. Where all names are taken, a slot is had
//     without one: whoever may bind a socket could otherwise deny the NIC to everybody.
//  3. Whoever leaves last removes everything and the directory; a process that was waiting for the lock
//     sees that the lock file it holds has no name any more, and begins again.
//
// The directory is addressed through its descriptor, so that its path may be longer than a socket address
// allows. Functions may be called from any thread; claim() and release() block for the lock at most
// lock_limit.
#pragma once

#include <ctime>
#include <memory>
#include <mutex>
#include <string>

#include "link/same_host.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

class SlotDirectory {
 public:
  struct Claim;
  // Opens (and makes, if missing) the directory, sweeps what dead processes left, and claims a free slot.
  // The search begins at a place derived from `pid`, so that a quick successor does not take over a dead
  // process's slot while others may still hold its number.
  static Result<Claim> claim(const std::string& path, pid_t pid);

  // Removes the slot; if no live process is left, everything else and the directory too.
  void release(Slot slot);

  // A non-blocking connection to the process in that slot. errc::no_such_device_or_address: nobody is there;
  // errc::resource_unavailable_try_again: it is there but its queue is full.
  Result<UniqueFd> dial(Slot slot) const;

  // The slots that have a name, of the living and of those whose end nobody has cleaned up yet.
  std::vector<Slot> named() const;

  // Whether our slot still has its name in the directory: somebody may have removed it, or the directory.
  bool has_name(Slot slot) const;
  // Gives it the name again, in the directory or in a new one at its path, and returns the new listener.
  // errc::file_exists: another process has taken the slot there.
  Result<UniqueFd> restore(Slot slot);

  // Our root directory was changed (chroot), so that no socket in it can be named any more.
  bool out_of_sight() const;

  const std::string& path() const { return path_; }
  void close() { directory_.reset(); }

 private:
  enum class Occupant { nobody, dead, living, unknown };  // unknown: errno says why

  static Result<SlotDirectory> open(const std::string& path);
  std::string address_of(const std::string& name) const;
  Occupant probe(Slot slot) const;
  void sweep_dead() const;
  bool anyone_living() const;
  void remove_everything() const;
  Result<UniqueFd> listen_as(Slot slot) const;
  struct Taken {
    Slot slot;
    UniqueFd listener, number;  // as Claim's
  };
  enum class Numbers : std::uint8_t { held, none };
  Result<Taken> take_slot(pid_t pid, Numbers numbers) const;

  std::string path_;
  UniqueFd directory_;

  // What named() read last. Each send to a multicast group asks.
  struct Names {
    std::mutex mutex;
    timespec changed{};    // the directory's modification time then
    bool settled = false;  // and that was old: a later change cannot have the same time
    std::vector<Slot> slots;
  };
  std::unique_ptr<Names> names_ = std::make_unique<Names>();
};

struct SlotDirectory::Claim {
  SlotDirectory directory;
  Slot slot;
  UniqueFd listener;  // non-blocking
  // Holds the slot's number in this network namespace, whatever the directory: behind one address a queue
  // pair number names one process. A socket that does not listen yet: other users reach us by it
  // (link/users). Empty: the kernel has no such names, or other users have taken all; then `warning` says so.
  UniqueFd number;
  std::string warning = {};
};

}  // namespace weir::link
