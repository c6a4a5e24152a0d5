// A SOCK_DGRAM rsocket: a UDP socket, by whose address it is found, and a UD queue pair for each local
// address it sends from.
//
// The first datagrams to a destination go through UDP, with our queue pair's number before them; the answer
// brings the other's, and from then on they go from queue pair to queue pair. Order is kept no better than
// UDP keeps it. Bounded: the ports' slots, and numbers of datagrams that came through UDP and of
// destinations.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "verbs/rsocket/datagram_port.hpp"
#include "verbs/rsocket/datagram_wire.hpp"
#include "verbs/rsocket/socket.hpp"

namespace weir::rsocket {

class Datagram final : public Socket {
 public:
  static Result<std::shared_ptr<Datagram>> open(int family);
  ~Datagram() override;

  int descriptor() const override { return udp_.get(); }
  int bind(const sockaddr* address, socklen_t size) override;
  int connect(const sockaddr* address, socklen_t size) override;
  int shut_down(int how) override;
  void close() override;
  Result<std::size_t> send(Pieces from, int flags, const sockaddr* to, socklen_t to_size) override;
  Result<std::size_t> receive(Pieces into, int flags, sockaddr_storage* from) override;
  int local_name(sockaddr_storage& name) override;
  int peer_name(sockaddr_storage& name) override;
  int set_option(int level, int name, const void* value, socklen_t size) override;
  int get_option(int level, int name, void* value, socklen_t* size) override;

 private:
  using Key = std::pair<cm::IpBytes, std::uint16_t>;
  struct Destination {
    DatagramPort* port = nullptr;
    ibv_ah* handle = nullptr;  // once its queue pair is known
    std::uint32_t qpn = 0;
  };
  struct Arrived {
    cm::Endpoint from;
    DatagramPort* port = nullptr;  // null: through UDP, in `own`
    std::uint32_t slot = 0;
    std::span<const std::byte> bytes;
    std::vector<std::byte> own;
  };

  explicit Datagram(int family) : Socket(family) {}
  short locked_ready(short events) override;
  void locked_prepare_sleep(std::vector<pollfd>& others) override;
  void locked_silence() override;

  void serve();  // the service's thread: the UDP socket is readable
  // mutex_ held in all below.
  void progress();
  void take(const cm::Endpoint& from, const Parsed<UdpHeader>& message);
  void learn(Destination& destination, const cm::Endpoint& who, std::uint32_t qpn);
  Result<DatagramPort*> port_towards(const cm::Endpoint& to);
  Result<Destination*> destination(const cm::Endpoint& to);
  int send_through_udp(const Destination& destination, const cm::Endpoint& to, DatagramOp op, Pieces data,
                       int flags);
  bool is_for_us(const cm::Endpoint& from) const;

  link::UniqueFd udp_;
  std::vector<std::unique_ptr<DatagramPort>> ports_;
  std::map<Key, Destination> destinations_;
  std::deque<Arrived> arrived_;
  std::optional<cm::Endpoint> peer_;
  bool reading_ = true, writing_ = true, closed_ = false;
  int error_ = 0;
};

}  // namespace weir::rsocket
