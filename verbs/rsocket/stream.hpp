// A SOCK_STREAM rsocket: a connection of the RDMA connection manager with a Pipe on it, or a listener for
// such.
//
//   fresh -> bound -> listening
//     \________\____-> resolving -> connecting -> connected -> (ends seen in the pipe)
//                          \____________\_______-> failed -> resolving (connect() again)
//
// Its number is the descriptor of its event channel.
#pragma once

#include <optional>

#include "verbs/rsocket/cm_events.hpp"
#include "verbs/rsocket/listener.hpp"
#include "verbs/rsocket/socket.hpp"
#include "verbs/rsocket/stream_pipe.hpp"

namespace weir::rsocket {

class Stream final : public Socket, private Listener::Owner {
 public:
  static Result<std::shared_ptr<Stream>> open(int family);
  ~Stream() override;

  int descriptor() const override { return channel_->fd; }
  int bind(const sockaddr* address, socklen_t size) override;
  int listen(int backlog) override;
  Result<SocketPtr> accept() override;
  int connect(const sockaddr* address, socklen_t size) override;
  int shut_down(int how) override;
  void close() override;
  Result<std::size_t> send(Pieces from, int flags, const sockaddr* to, socklen_t to_size) override;
  Result<std::size_t> receive(Pieces into, int flags, sockaddr_storage* from) override;
  int local_name(sockaddr_storage& name) override;
  int peer_name(sockaddr_storage& name) override;
  int set_option(int level, int name, const void* value, socklen_t size) override;
  int get_option(int level, int name, void* value, socklen_t* size) override;
  Result<std::uint64_t> map(void* buffer, std::size_t size, int protection, std::int64_t offset) override;
  int unmap(void* buffer, std::size_t size) override;
  Result<std::size_t> write_mapped(Pieces from, std::uint64_t offset, int flags) override;

  // The process ends. Sends the end of the stream, and waits for nothing: call again until it is over, which
  // it is once the peer has taken all that was sent, or is gone. in_use: a call of the program's has the
  // mutex, maybe one that a signal's handler interrupted and that never ends.
  enum class Leaving : std::uint8_t { over, under_way, in_use };
  Leaving leave();

 private:
  enum class Phase : std::uint8_t { fresh, bound, listening, resolving, connecting, connected, failed };
  explicit Stream(int family) : Socket(family) {}
  int make_id();

  short locked_ready(short events) override;
  void locked_prepare_sleep(std::vector<pollfd>& others) override;
  void locked_silence() override;

  // mutex_ held in all below.
  bool in_progress() const { return phase_ == Phase::resolving || phase_ == Phase::connecting; }
  int begin_connect(const sockaddr* address, socklen_t size);
  void advance();  // takes the connection manager's events
  int step(const CmEvent& event);
  int request_connection();
  void fail(int error);
  void progress();
  bool can_read() const;   // something is there, or nothing will come
  bool at_end() const;     // nothing more will come
  int send_error() const;  // why nothing can be sent; 0: it can
  int locked_wait_room(std::unique_lock<std::mutex>& hold, int flags, bool (Stream::*room)());
  bool has_room() { return pipe_->room() > 0; }
  bool can_announce() { return !pipe_->announcement_due() || pipe_->announce_mapping(); }
  int locked_announce(std::unique_lock<std::mutex>& hold, int flags);
  int locked_shut_down(std::unique_lock<std::mutex>& hold, int how);

  // Listener::Owner, on the service's thread.
  void accepted(Listener::Connection connection) override;
  Options options_to_inherit() override;

  ChannelPtr channel_;
  IdPtr id_;
  std::unique_ptr<Pipe> pipe_;
  std::deque<std::shared_ptr<Stream>> ready_;  // for accept()
  std::unique_ptr<Listener> listener_;
  Phase phase_ = Phase::fresh;
  bool reading_ = true, writing_ = true;  // not shut down by us
  bool lost_ = false;                     // the connection is over, says the connection manager
  bool reset_reported_ = false, peer_notified_ = false, closed_ = false;
  int error_ = 0;  // SO_ERROR
};

}  // namespace weir::rsocket
