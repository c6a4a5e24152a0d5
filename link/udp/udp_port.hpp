// The process's UDP socket on the RoCEv2 port: datagrams out in batches, datagrams in by callback.
//
// One unconnected socket on the wildcard address, for IPv6 and IPv4 (for IPv4 alone where the kernel has no
// IPv6), so that no privilege is needed and the kernel numbers IPv4 packets as the ICRC assumes: the IP ID of
// a datagram sent alone is 0, those of a batch count up from 0, and "don't fragment" is set. Where the kernel
// cuts a batch up (UDP_SEGMENT) and hands one over whole (UDP_GRO), both are used. Runs are refused from the
// first on that the kernel does not cut.
//
// Processes of one user share the port (SO_REUSEPORT); a process of another user, or the kernel's rdma_rxe,
// keeps us out.
//
// Threading: send() from any thread. receive() from any thread, one at a time: it returns at once when
// another is in it. A forked child's copy is closed at the fork.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "link/fork_guard.hpp"
#include "link/same_host.hpp"
#include "link/udp/udp_route.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

// Datagrams to one destination, laid back to back: all of `segment` bytes; the last may be shorter. At most
// max_run_segments and max_run_bytes.
struct UdpRun {
  std::span<const std::byte> bytes;
  std::uint16_t segment = 0;
};
inline constexpr std::size_t max_run_segments = 64;
inline constexpr std::size_t max_run_bytes = 65'507;

struct UdpArrival {
  std::span<const std::byte> payload;
  IpAddress source{}, destination{};
  std::uint16_t source_port = 0;
  std::uint8_t traffic_class = 0, hop_limit = 0;
  std::uint32_t interface = 0;  // that it came in by, from a link-local source
  // Its place among those that came in one batch, and so probably its IP ID.
  std::uint16_t index = 0;
};

class UdpPort final : private ForkAware {
 public:
  using Handler = std::function<void(std::span<const UdpArrival>)>;
  // What a receive buffer may hold; the kernel grants less where rmem_max is less.
  static constexpr int wanted_receive_bytes = 8 << 20;

  static Result<std::unique_ptr<UdpPort>> open(std::uint16_t port);
  ~UdpPort();
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  int descriptor() const { return socket_.get(); }
  // Returns the kernel's answer: 0, or the errno of the first run that was not sent; later runs are not
  // tried. A full send buffer drops a run, as a wire would. `went`, if not empty, has a place for each run:
  // whether the kernel took it.
  int send(const UdpRoute& route, std::span<const UdpRun> runs, std::span<bool> went = {});
  // `handler` gets what has arrived, in this thread: at most a few megabytes, so that others get their turn.
  void receive(const Handler& handler);
  // What the kernel did not hand over: turned away by a filter, or there was no room in the receive buffer.
  std::uint64_t not_received() const;
  // From now on, datagrams to that group arrive if they come in by that interface; those that this host sends
  // do not. Each process on the port joins for itself, and each gets a copy. 0, or an errno: ENOBUFS or
  // ENOMEM if the kernel lets the socket join no more groups, EADDRINUSE if it has already joined.
  int join(const IpAddress& group, std::uint32_t interface);
  int leave(const IpAddress& group, std::uint32_t interface);
  // Before a process that shares the port ends: from now on datagrams go to the others' sockets, and
  // receive() has those that came before. What is sent afterwards over IPv4 has an ID that the ICRC does not
  // expect. Without effect where loopback is down.
  void turn_arrivals_away();
  // Whether the kernel cuts a run up; as long as it does not, a run is one datagram.
  bool cuts_runs() const { return cuts_runs_.load(std::memory_order_relaxed); }
  // The other user who holds that port, and so keeps us out, if there is one.
  static std::optional<unsigned> other_user_of(std::uint16_t port);
  // Whether a send to there has a way: 0, or ENETUNREACH and the like.
  static int way_to(const UdpRoute& route);

 private:
  UdpPort(UniqueFd socket, bool ipv6);
  std::expected<std::size_t, int> send_some(const UdpRoute& route, std::span<const UdpRun> runs);
  int change_membership(const IpAddress& group, std::uint32_t interface, int v4_option, int v6_option);
  // Nothing is locked: the receiver may wait for the link, which is locked by then. The child's copy is
  // closed and never used, whatever state the fork found it in.
  void lock_for_fork() override {}
  void unlock_after_fork() override {}
  void abandon_in_child() override { socket_.reset(); }

  UniqueFd socket_;
  const bool ipv6_;
  std::atomic<bool> cuts_runs_{true};
  std::mutex receiving_;  // guards the two below
  std::unique_ptr<std::byte[]> buffer_;
  std::vector<UdpArrival> arrived_;
  ForkRegistration fork_registration_{*this};
};

}  // namespace weir::link
