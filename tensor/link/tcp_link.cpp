#include "tensor/link/tcp_link.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "transport/tcp_pacing.hpp"

namespace weir::tensor {
namespace {

using asio::ip::tcp;
using transport::StreamStep;
using transport::TlsSide;
using Needs = StreamStep::Needs;

constexpr std::size_t part_bytes = std::size_t{1} << 20;  // data between which messages may go out
constexpr std::size_t turn_bytes = std::size_t{8} << 20;  // sent before others have their turn
constexpr std::size_t most_pieces = 64;
constexpr std::chrono::seconds tick{1};
constexpr int longest_stall_ticks = 10;
constexpr unsigned host_gone_ms = 10'000;

void append(std::vector<std::byte>& to, std::span<const std::byte> from) {
  to.insert(to.end(), from.begin(), from.end());
}

void set_up(tcp::socket& socket) {
  std::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int name, int value) {
    setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 3);
  set(TCP_KEEPINTVL, 2);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, static_cast<int>(host_gone_ms));
}

}  // namespace

// --- setting up

TcpLink& TcpLink::connect(asio::io_context& io, const tcp::endpoint& hub, Encryption encryption,
                          LinkEvents& events, std::function<void()> on_up) {
  const std::shared_ptr<TcpLink> link(new TcpLink(tcp::socket(io)));
  link->events_ = &events;
  link->remote_ = hub;
  link->on_up_ = [on_up = std::move(on_up)](TcpLink&) { on_up(); };
  std::error_code failed;
  tcp::socket& socket = link->bytes_.socket();
  socket.open(hub.protocol(), failed);
  transport::spare_pacing(socket.native_handle(), hub.data(), static_cast<socklen_t>(hub.size()));
  socket.async_connect(hub, [link, encryption = std::move(encryption)](std::error_code error) mutable {
    if (link->state_ == State::ended) return;
    if (error) return link->end(Error{Errc::unreachable, "TCP: " + error.message(), 0});
    link->begin(TlsSide::client, 0, std::move(encryption));
  });
  link->start_timer();
  return *link;
}

void TcpLink::accept(tcp::socket socket, std::uint64_t generation, Place place,
                     std::function<void(TcpLink&)> on_up) {
  const std::shared_ptr<TcpLink> link(new TcpLink(std::move(socket)));
  link->counted_ = std::move(place.counted);
  link->on_up_ = std::move(on_up);
  link->start_timer();
  link->begin(TlsSide::server, generation, std::move(place.encryption));
  if (link->state_ == State::ended) return;
  const std::string from = link->remote_.address().to_string();
  const auto leave = [weak = std::weak_ptr(link)](transport::Newcomers::Lack) {
    if (const auto leaves = weak.lock())
      leaves->end(Error{Errc::closed, "the hub is full, and this peer had asked for nothing yet", 0});
    return transport::Newcomers::Room::now;
  };
  link->is_newcomer(place.newcomers->enter(from, leave));
  if (link->state_ == State::securing) link->bytes_.may_leave(from, leave);
}

TcpLink::~TcpLink() = default;

void TcpLink::begin(TlsSide side, std::uint64_t generation, Encryption encryption) {
  set_up(bytes_.socket());
  std::error_code failed;
  remote_ = bytes_.socket().remote_endpoint(failed);
  ours_ = generation;
  if (encryption.context == nullptr) return greet();
  state_ = State::securing;
  bytes_.encrypt(side, std::move(encryption));
  shake_hands();
}

void TcpLink::shake_hands() {
  const StreamStep step = bytes_.shake_hands();
  if (step.needs == Needs::over) return end_of_bytes();
  if (step.needs != Needs::nothing) return wait_for(step.needs, &TcpLink::shake_hands);
  greet();
}

void TcpLink::greet() {
  state_ = State::greeting;
  // The window and the table matter only over RDMA; here they just have to be in range.
  going_.head = wire::encode(
      wire::Greeting{.window = 2, .generation = ours_, .records = {0, wire::slots * wire::record_bytes, 0}});
  going_.left = {going_.head};
  pump_soon();
  read_later(Needs::nothing);
}

bool TcpLink::on_greeting(std::span<const std::byte> greeting) {
  const Result<wire::Greeting> theirs = wire::parse_greeting(greeting);
  if (!theirs) return broke(theirs.error().what);
  theirs_ = theirs->generation;
  state_ = State::up;
  if (const auto on_up = std::move(on_up_); on_up) on_up(*this);
  return state_ == State::up;
}

// --- receiving

void TcpLink::wait_for(Needs needs, void (TcpLink::*next)()) {
  bytes_.when_it_may(needs, [self = shared_from_this(), next] {
    if (self->state_ != State::ended) (self.get()->*next)();
  });
}

// Data go into the sink's memory only within this call, so memory that is forgotten between calls is safe.
void TcpLink::read_some() {
  Needs needs = Needs::nothing;
  for (std::size_t turn = 0; turn < turn_bytes && needs == Needs::nothing;) {
    const std::span<std::byte> room = reader_.room();
    if (room.empty()) break;
    const StreamStep step = bytes_.read(room);
    if (step.needs == Needs::over) return end_of_bytes();
    needs = step.needs;
    if (needs != Needs::nothing) break;
    turn += step.bytes;
    if (!reader_.came(step.bytes)) break;
    // A TLS record ends where its sender likes; the socket had no more than it gave.
    if (step.bytes < room.size() && !bytes_.is_encrypted()) break;
  }
  if (state_ == State::ended) return;
  if (!reader_.fault().empty()) return static_cast<void>(broke(reader_.fault()));
  read_later(needs);
}

void TcpLink::read_later(Needs needs) {
  if (needs == Needs::nothing && bytes_.holds_input())
    return asio::post(bytes_.socket().get_executor(), [self = shared_from_this()] {
      if (self->state_ != State::ended) self->read_some();
    });
  wait_for(needs == Needs::writable ? needs : Needs::readable, &TcpLink::read_some);
}

void TcpLink::end_of_bytes() {
  const bool was_up = state_ == State::up;
  if (bytes_.why().empty()) {
    const char* const hint = state_ == State::securing ? " in the TLS handshake" : "";
    return end(Error{Errc::peer_gone, std::string("the other end closed the connection") + hint, theirs_});
  }
  end(Error{was_up ? Errc::peer_gone : Errc::refused, std::string(bytes_.why()), theirs_});
}

bool TcpLink::on_message(std::span<const std::byte> message) {
  if (events_ != nullptr) events_->on_frame(message);
  return state_ == State::up;
}

std::span<std::byte> TcpLink::room_for(std::uint32_t index, std::uint64_t most) {
  const Expected& expected = expected_[wire::slot_of(index)];
  const bool fits =
      expected.there && expected.index == index && most <= expected.memory.size() - expected.received;
  if (!fits) {
    broke("unexpected data, or more than expected");
    return {};
  }
  return expected.memory.subspan(static_cast<std::size_t>(expected.received), static_cast<std::size_t>(most));
}

void TcpLink::filled(std::uint32_t index, std::size_t bytes) {
  expected_[wire::slot_of(index)].received += bytes;
}

bool TcpLink::on_record(const wire::Record& record) {
  Expected& expected = expected_[wire::slot_of(record.index)];
  if (!expected.there || expected.index != record.index) return broke("an unexpected transfer ended");
  if (record.bytes != expected.received) return broke("a transfer ended early");
  expected = {};
  if (events_ != nullptr) events_->on_written(record);
  return state_ == State::up;
}

Result<wire::Memory> TcpLink::expect(std::uint32_t index, std::span<std::byte> memory) {
  if (state_ != State::up) return fail(Errc::closed, "the link is not up");
  expected_[wire::slot_of(index)] = {index, memory, 0, true};
  return wire::Memory{0, memory.size(), 0};
}

std::optional<std::uint64_t> TcpLink::arrived(std::uint32_t index) const {
  const Expected& expected = expected_[wire::slot_of(index)];
  return expected.there && expected.index == index ? expected.received : 0;
}

void TcpLink::forget(std::uint32_t index) {
  Expected& slot = expected_[wire::slot_of(index)];
  if (slot.index == index) slot = {};
}

Result<std::vector<wire::Memory>> TcpLink::expose(const Source&) {
  return fail(Errc::bad_array, "there are no READs over TCP");
}
Result<void> TcpLink::read(std::uint32_t, std::span<const wire::Memory>) {
  return fail(Errc::protocol, "the hub sent a LOCATION over TCP");
}

// --- sending

void TcpLink::send(const wire::Message& message) {
  if (state_ != State::up) return;
  if (const std::string_view fault = outbox_.put(message); !fault.empty())
    return static_cast<void>(broke(std::string(fault)));
  pump_soon();
}

void TcpLink::write(Transfer transfer) {
  if (state_ != State::up) return;
  if (const std::string_view fault = outbox_.put(std::move(transfer)); !fault.empty())
    return static_cast<void>(broke(std::string(fault)));
  pump_soon();
}

void TcpLink::pump_soon() {
  if (std::exchange(pumping_, true)) return;
  asio::post(bytes_.socket().get_executor(), [self = shared_from_this()] {
    self->pumping_ = false;
    self->pump();
  });
}

void TcpLink::pump() {
  if (state_ == State::ended || state_ == State::connecting || state_ == State::securing) return;
  std::size_t turn = 0;
  while (!going_.left.empty() || compose()) {
    if (turn >= turn_bytes) return pump_soon();
    const StreamStep step = bytes_.write(going_.left);
    if (step.needs == Needs::over) return end_of_bytes();
    if (step.needs != Needs::nothing) {
      pumping_ = true;
      return wait_for(step.needs, &TcpLink::pump_on);
    }
    std::size_t bytes = step.bytes;
    turn += bytes;
    taken_ += bytes;
    std::size_t done = 0;
    while (done < going_.left.size() && bytes >= going_.left[done].size())
      bytes -= going_.left[done++].size();
    going_.left.erase(going_.left.begin(), going_.left.begin() + static_cast<std::ptrdiff_t>(done));
    if (bytes > 0) going_.left.front() = going_.left.front().subspan(bytes);
  }
  if (left_) close();
}

void TcpLink::pump_on() {
  pumping_ = false;
  pump();
}

// Composes the next bytes for the socket: all messages, then a part of the oldest transfer.
bool TcpLink::compose() {
  going_ = {};
  if (state_ != State::up) return false;
  for (; outbox_.has_frame(); outbox_.frame_is_out()) {
    append(going_.head, frames::encode({frames::Kind::message, 0, outbox_.frame().size()}));
    append(going_.head, outbox_.frame());
  }
  if (outbox_.has_transfer()) {
    compose_data(outbox_.transfer());
    if (outbox_.transfer().all_sent()) outbox_.transfer_is_out();
  }
  if (!going_.head.empty()) going_.left.insert(going_.left.begin(), going_.head);
  if (!going_.tail.empty()) going_.left.emplace_back(going_.tail);
  return !going_.left.empty();
}

void TcpLink::compose_data(Outgoing& outgoing) {
  const Transfer& transfer = outgoing.transfer();
  std::array<Outgoing::Part, most_pieces> parts;
  std::size_t bytes = 0;
  for (const Outgoing::Part& each : outgoing.take(parts, part_bytes)) {
    going_.left.push_back(each.bytes);
    bytes += each.bytes.size();
  }
  if (bytes > 0) append(going_.head, frames::encode({frames::Kind::data, transfer.record.index, bytes}));
  going_.source = transfer.source;
  if (!outgoing.all_sent()) return;
  append(going_.tail, frames::encode({frames::Kind::record, 0, wire::record_bytes}));
  append(going_.tail, wire::encode(transfer.record));
}

// --- ending

void TcpLink::start_timer() {
  timer_.expires_after(tick);
  timer_.async_wait([self = weak_from_this()](std::error_code error) {
    const std::shared_ptr<TcpLink> link = self.lock();
    if (error || link == nullptr || link->state_ == State::ended) return;
    const bool waits = link->state_ != State::up || !link->going_.left.empty();
    const bool moved = std::exchange(link->taken_before_, link->taken_) != link->taken_;
    link->idle_ticks_ = waits && !moved ? link->idle_ticks_ + 1 : 0;
    if (link->idle_ticks_ >= (link->left_ ? 1 : longest_stall_ticks))
      return link->end(Error{Errc::unreachable, "the other end takes nothing of what it asked for", 0});
    link->start_timer();
  });
}

bool TcpLink::broke(std::string what) {
  end(Error{Errc::protocol, std::move(what), 0});
  return false;
}

void TcpLink::break_off(const Error& cause) { end(cause); }

// Closes at once; the owner is told from a handler of its own.
void TcpLink::end(Error cause) {
  if (state_ == State::ended) return;
  cause.generation = theirs_;
  close();
  asio::post(bytes_.socket().get_executor(), [self = shared_from_this(), cause = std::move(cause)] {
    if (LinkEvents* events = std::exchange(self->events_, nullptr); events != nullptr) events->on_end(cause);
  });
}

void TcpLink::close() {
  state_ = State::ended;
  settle();
  counted_ = nullptr;
  for (Expected& each : expected_) each = {};
  outbox_.clear();
  going_ = {};
  on_up_ = nullptr;
  timer_.cancel();
  bytes_.close();
}

// Messages that are queued still go out, for one or two ticks.
void TcpLink::leave() {
  events_ = nullptr;
  left_ = true;
  if (state_ == State::ended) return;
  for (Expected& each : expected_) each = {};
  outbox_.drop_transfers();
  const std::shared_ptr<TcpLink> self = shared_from_this();
  if (state_ != State::up) return close();
  if (!pumping_) pump();
}

}  // namespace weir::tensor
