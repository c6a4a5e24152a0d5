// RDMA's own ports, one space for each user's runtime directory and independent of TCP's.
//
// A bound address is a small file there, "cm/tcp-7471/<address>", that names its owner (slot and
// incarnation), so any process can look up the listener. Files are made and removed under a lock file, and
// valid only while their owner lives. What a killed process left is removed by the next process that wants
// that port, by the next to start, and now and then by a process that binds anything: often enough that
// remains are never more than half of the files, and seldom enough that a bind costs the same however many
// ports are taken. A port has a folder of its own for the same reason: a bind reads only one, and a change
// there does not invalidate the list of slots beside "cm" (link/slot_directory.hpp). A lookup that leads to
// another incarnation has found no listener.
//
// Threading: any thread; bind() and release() block for the lock (link::FileLock::limit at most), and so does
// the constructor if there is something to remove.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "link/file_lock.hpp"
#include "link/same_host.hpp"
#include "verbs/cm/endpoint.hpp"

namespace weir::cm {

struct PortOwner {
  link::Slot slot = 0;
  std::uint64_t incarnation = 0;
  bool operator==(const PortOwner&) const = default;
};

// May one address take the port that another holds?
struct Sharing {
  bool reuse_address = false;  // both must say so, and both be of this process
  bool v6_only = false;        // "::" then leaves IPv4 alone
};

struct Binding {
  std::uint16_t port_space = 0;  // rdma_port_space
  Endpoint endpoint;             // port is never 0
  Sharing sharing;
};

// "tcp", "udp", "ipoib", "ib": the first part of the name of a port's folder.
const char* name_of_space(std::uint16_t port_space);

class PortSpace {
 public:
  using Lives = std::function<bool(const PortOwner&)>;

  // `lives`: whether that process is still there; may block a little. `self` is this process.
  PortSpace(std::string directory, PortOwner self, Lives lives);

  // Port 0 takes a free one of the ephemeral range. The error is an errno: EADDRINUSE, or what the directory
  // said.
  std::expected<Binding, int> bind(std::uint16_t port_space, Endpoint endpoint, Sharing sharing);
  // Once for each bind. Needs no descriptor.
  void release(const Binding& binding);
  // From now on find_listener() finds it. An errno: it does not.
  int listening(const Binding& binding);
  // Somebody has removed the directory, and it has been made anew: what is bound is written there again.
  void restore();

  // The owner of the address, or of a wildcard that covers it. Not verified to be alive.
  std::optional<PortOwner> find(std::uint16_t port_space, const Endpoint& destination) const;
  std::optional<PortOwner> find_listener(std::uint16_t port_space, const Endpoint& destination) const;

 private:
  struct Entry {
    std::string name;  // below "cm": folder and file
    Endpoint endpoint;
    PortOwner owner;
    Sharing sharing;
    bool listening = false;
  };
  struct FileId {
    std::uint64_t device = 0, inode = 0;
    bool operator==(const FileId&) const = default;
  };
  struct Held {
    Entry entry;  // as we wrote it last
    FileId file;
    std::uint32_t holders = 0;  // binds of ours that share it
  };
  link::Result<link::FileLock> lock() const;
  std::optional<Entry> find_entry(std::uint16_t port_space, const Endpoint& destination) const;
  // The error: why it cannot be read now; 0: it is nobody's.
  std::expected<Entry, int> read(const std::string& name) const;
  std::expected<FileId, int> write(const Entry& entry) const;
  bool is_at(const std::string& name, const FileId& file) const;
  std::expected<Binding, int> bind_port(std::uint16_t port_space, const Endpoint& endpoint, Sharing sharing);
  void remove(const std::string& name) const;
  void sweep();
  std::vector<std::string> left_without_slot();
  std::string path_of(const std::string& name) const;
  template <class Visit>
  int for_each_in(const std::string& folder, Visit visit) const;

  const std::string directory_;
  const PortOwner self_;
  const Lives lives_;
  std::size_t binds_before_sweep_ = 0;  // under the lock
  std::mutex mutex_;                    // taken after the lock, or alone by callers that cannot take the lock
  std::map<std::string, Held> held_;    // by the entry's name
};

}  // namespace weir::cm
