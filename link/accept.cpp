// Incoming connections: accepting them, limiting their time to say hello, and deciding which may stay.
//  All on the progress thread.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "link/attachment.hpp"

namespace weir::link {
namespace {

constexpr int accepts_per_turn = 64;
constexpr std::size_t max_half_open = 128;  // further ones are closed at once; honest callers try again
constexpr std::chrono::seconds hello_limit{5};
constexpr std::chrono::milliseconds accept_pause{20};

}  // namespace

void Attachment::accept_some() {
  for (int i = 0; i < accepts_per_turn; ++i) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return pause_accepting();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// Without descriptors the caller stays in the queue and the listener stays readable:
// without a pause we would spin.
void Attachment::pause_accepting() {
  progress_->change(listener_key_, 0);
  progress_->at(Clock::now() + accept_pause, [this] { progress_->change(listener_key_, EPOLLIN); });
}

void Attachment::admit(UniqueFd socket) {
  if (half_open_.size() >= max_half_open) return;
  auto caller = Connection::open(std::move(socket), 0, progress_, *this);
  if (!caller) return;
  if ((*caller)->uid() != user_) return (*caller)->close_quietly();
  remember(*caller);
  const auto timer = progress_->at(Clock::now() + hello_limit, [late = *caller] { late->end(); });
  half_open_.emplace(*caller, timer);
}

void Attachment::greet_caller(const Connection::Ptr& caller, Connection::Identity identity) {
  if (const auto found = half_open_.find(caller); found != half_open_.end()) {
    progress_->cancel(found->second);
    half_open_.erase(found);
  }
  const auto turn_away = [&](Refusal why) {
    forget(caller);
    caller->refuse(why);
  };
  const Slot slot = identity.slot;
  if (slot == slot_) return turn_away(Refusal::foreign);
  if (const auto old = established(slot)) {
    if (old->incarnation() == identity.incarnation) return turn_away(Refusal::duplicate);
    old->drain_and_end();
  }
  const auto dial = dials_.find(slot);
  if (dial != dials_.end() && dial->second.connection) {
    if (slot_ < slot) return turn_away(Refusal::duplicate);
    const auto given_up = std::exchange(dial->second.connection, nullptr);
    forget(given_up);
    given_up->close_quietly();
  }
  if (!caller->send_hello(slot_, incarnation_, greeting_)) return caller->end();
  establish(caller, std::move(identity));
  finish_dial(slot, NeighbourPtr(caller));
}

}  // namespace weir::link
