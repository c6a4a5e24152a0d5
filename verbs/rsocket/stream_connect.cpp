// A stream's life with the connection manager: bind, listen, accept, connect, and its events.
#include <cerrno>
#include <utility>

#include "verbs/rsocket/stream.hpp"

namespace weir::rsocket {
namespace {

constexpr int resolve_limit_ms = 2000;

int check(const sockaddr* address, socklen_t size) {
  if (address == nullptr) return EFAULT;
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return EAFNOSUPPORT;
  return size < size_of_family(address->sa_family) ? EINVAL : 0;
}

}  // namespace

Result<std::shared_ptr<Stream>> Stream::open(int family) {
  std::shared_ptr<Stream> stream(new Stream(family));
  stream->channel_ = open_channel();
  if (!stream->channel_) return std::unexpected(errno);
  if (const int error = stream->make_id(); error != 0) return std::unexpected(error);
  return stream;
}

Stream::~Stream() {
  if (listener_) listener_->stop();
}

int Stream::make_id() {
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(channel_.get(), &made, nullptr, RDMA_PS_TCP) != 0) return errno;
  id_.reset(made);
  const auto set = [&](int name, bool on) {
    int value = on;
    if (on) rdma_set_option(made, RDMA_OPTION_ID, name, &value, sizeof value);
  };
  set(RDMA_OPTION_ID_REUSEADDR, options_.reuse_address);
  set(RDMA_OPTION_ID_AFONLY, options_.v6_only);
  return 0;
}

int Stream::bind(const sockaddr* address, socklen_t size) {
  if (const int error = check(address, size); error != 0) return error;
  const std::scoped_lock hold(mutex_);
  if (phase_ != Phase::fresh) return EINVAL;
  if (rdma_bind_addr(id_.get(), const_cast<sockaddr*>(address)) != 0) return errno;
  phase_ = Phase::bound;
  return 0;
}

int Stream::listen(int backlog) {
  const std::scoped_lock hold(mutex_);
  if (phase_ == Phase::listening) return 0;
  if (phase_ != Phase::fresh && phase_ != Phase::bound) return EINVAL;
  if (rdma_listen(id_.get(), static_cast<int>(Listener::most_backlog)) != 0) return errno;
  Listener::Owner& self = *this;
  listener_ = std::make_unique<Listener>(channel_.get(), backlog, self);
  if (const int error = listener_->start(); error != 0) {
    listener_.reset();
    return error;
  }
  phase_ = Phase::listening;
  return 0;
}

Options Stream::options_to_inherit() {
  const std::scoped_lock hold(mutex_);
  return options_;
}

void Stream::accepted(Listener::Connection connection) {
  std::shared_ptr<Stream> made(new Stream(family_));
  const std::scoped_lock hold(mutex_);
  made->channel_ = std::move(connection.channel);
  made->id_ = std::move(connection.id);
  made->pipe_ = std::move(connection.pipe);
  made->options_ = options_;
  made->phase_ = Phase::connected;
  ready_.push_back(std::move(made));
  watchers_.wake_all();
}

Result<SocketPtr> Stream::accept() {
  std::unique_lock hold(mutex_);
  if (phase_ != Phase::listening) return std::unexpected(EINVAL);
  if (ready_.empty() && !locked_blocks(0)) return std::unexpected(EAGAIN);
  if (const int error = locked_wait(hold, [&] { return !ready_.empty() || closed_; }); error != 0)
    return std::unexpected(error);
  if (closed_) return std::unexpected(EBADF);
  SocketPtr taken = std::move(ready_.front());
  ready_.pop_front();
  listener_->taken();
  return taken;
}

int Stream::begin_connect(const sockaddr* address, socklen_t size) {
  if (const int error = check(address, size); error != 0) return error;
  if (phase_ == Phase::failed) {  // an identifier connects once
    pipe_.reset();
    ++generation_;
    if (const int error = make_id(); error != 0) return error;
    error_ = 0;
  }
  phase_ = Phase::resolving;
  if (rdma_resolve_addr(id_.get(), nullptr, const_cast<sockaddr*>(address), resolve_limit_ms) == 0) return 0;
  fail(errno);
  return std::exchange(error_, 0);
}

int Stream::connect(const sockaddr* address, socklen_t size) {
  std::unique_lock hold(mutex_);
  if (phase_ == Phase::listening) return EINVAL;
  if (phase_ == Phase::connected) return EISCONN;
  const bool begun = in_progress();
  // One that failed is told first, if nobody was: by this call, or by SO_ERROR.
  if (!begun && error_ != 0) return std::exchange(error_, 0);
  if (!begun) {
    if (const int error = begin_connect(address, size); error != 0) return error;
  }
  advance();
  if (in_progress() && !locked_blocks(0)) return begun ? EALREADY : EINPROGRESS;
  // A signal leaves it going on, as connect(2) has it; the next call waits for it.
  const auto done = [&] {
    advance();
    return !in_progress() || closed_;
  };
  if (const int error = locked_wait(hold, done); error != 0) return error;
  if (closed_) return EBADF;
  return phase_ == Phase::connected ? 0 : std::exchange(error_, 0);
}

void Stream::fail(int error) {
  phase_ = Phase::failed;
  error_ = error != 0 ? error : ECONNABORTED;
}

void Stream::advance() {
  if (phase_ == Phase::listening) return;  // those are the listener's
  bool any = false;
  while (const auto event = next_event(channel_.get())) {
    any = true;
    if (const int error = step(*event); error != 0) fail(error);
  }
  if (any) watchers_.wake_all();
}

int Stream::step(const CmEvent& event) {
  if (phase_ == Phase::connected) {
    lost_ = lost_ || event.type == RDMA_CM_EVENT_DISCONNECTED;
    return 0;
  }
  if (!in_progress()) return 0;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return rdma_resolve_route(id_.get(), resolve_limit_ms) == 0 ? 0 : errno;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return request_connection();
    case RDMA_CM_EVENT_ESTABLISHED: {
      const auto peers = parse_greeting(event.private_data);
      if (!peers) return EPROTO;
      pipe_->begin(*peers);
      phase_ = Phase::connected;
      return 0;
    }
    default:
      return errno_of(event);
  }
}

int Stream::request_connection() {
  auto pipe = Pipe::make(id_.get(), options_);
  if (!pipe) return pipe.error();
  pipe_ = std::move(*pipe);
  const auto greeting = encode(pipe_->greeting());
  rdma_conn_param request{};
  request.private_data = greeting.data();
  request.private_data_len = greeting.size();
  request.flow_control = 1;
  request.retry_count = request.rnr_retry_count = 7;
  if (rdma_connect(id_.get(), &request) != 0) return errno;
  phase_ = Phase::connecting;
  return 0;
}

int Stream::local_name(sockaddr_storage& name) {
  const std::scoped_lock hold(mutex_);
  name = id_->route.addr.src_storage;
  if (name.ss_family == 0) name.ss_family = static_cast<sa_family_t>(family_);
  name = in_family(name, family_);
  return 0;
}

int Stream::peer_name(sockaddr_storage& name) {
  const std::scoped_lock hold(mutex_);
  if (phase_ != Phase::connected) return ENOTCONN;
  name = in_family(id_->route.addr.dst_storage, family_);
  return 0;
}

}  // namespace weir::rsocket
