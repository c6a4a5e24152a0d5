// Outgoing connections: a dial is a series of attempts to reach one slot, shared by all waiting threads.
#include <unistd.h>

#include <algorithm>

#include "link/attachment.hpp"
#include "link/error.hpp"
#include "link/not_cancelled.hpp"

namespace weir::link {
namespace {

constexpr std::chrono::milliseconds max_backoff{50};

std::unexpected<Error> nobody_in(Slot slot) {
  return failure(std::errc::no_such_device_or_address, "no process lives in slot " + std::to_string(slot));
}

std::unexpected<Error> no_answer_of(Slot slot) {
  return failure(std::errc::timed_out, "slot " + std::to_string(slot) + " did not answer");
}

}  // namespace

bool Attachment::hindered() const { return ::geteuid() != user_ || directory_.out_of_sight(); }

std::unexpected<Error> Attachment::hindered_from(Slot slot) const {
  const std::string why = ::geteuid() == user_
                              ? " and has another root directory now, without it"
                              : " as user " + std::to_string(user_) + " and runs as user " +
                                    std::to_string(::geteuid()) + " now, who may not enter it";
  return failure(std::errc::permission_denied,
                 "this process opened the NIC in " + directory_.path() + why +
                     ": it cannot go to the process in slot " + std::to_string(slot) +
                     ", which did not come here either; open the device after giving up rights, in both "
                     "programs, or connect before");
}

Result<NeighbourPtr> Attachment::connect(Slot slot, std::chrono::milliseconds limit) {
  if (slot == 0 || slot >= max_slots) return failure(std::errc::invalid_argument, "a slot is 1 .. 1023");
  if (progress_->abandoned()) {
    return failure(std::errc::not_connected,
                   "this process was forked from the link's owner; attach for yourself");
  }
  if (slot == slot_) return NeighbourPtr(self_);
  if (auto already = established(slot)) return NeighbourPtr(already);
  if (progress_->is_current()) {
    return failure(std::errc::resource_deadlock_would_occur,
                   "the progress thread cannot wait for a connection");
  }
  const auto give_up = Clock::now() + limit;
  const NotCancelled whole;
  const auto waiter = std::make_shared<Waiter>();
  progress_->post([this, slot, waiter, give_up] { start_dial(slot, waiter, give_up); });
  std::unique_lock hold(mutex_);
  dialed_.wait_until(hold, give_up, [&] { return waiter->result.has_value(); });
  if (waiter->result) return *waiter->result;
  if (hindered()) return hindered_from(slot);
  return failure(std::errc::timed_out, "the process in slot " + std::to_string(slot) + " did not answer in " +
                                           std::to_string(limit.count()) + " ms; it may be stopped");
}

void Attachment::connect_async(Slot slot, std::chrono::milliseconds limit,
                               std::function<void(Result<NeighbourPtr>)> done) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->done = std::move(done);
  progress_->post([this, slot, waiter, give_up = Clock::now() + limit] {
    if (slot == 0 || slot >= max_slots) {
      waiter->done(failure(std::errc::invalid_argument, "a slot is 1 .. 1023"));
    } else if (slot == slot_) {
      waiter->done(NeighbourPtr(self_));
    } else {
      start_dial(slot, waiter, give_up);
    }
  });
}

// Everything from here on runs on the progress thread.

void Attachment::start_dial(Slot slot, std::shared_ptr<Waiter> waiter, Clock::time_point give_up) {
  auto [place, is_new] = dials_.try_emplace(slot);
  Dial& dial = place->second;
  dial.waiters.push_back(std::move(waiter));
  if (is_new || give_up > dial.give_up) {
    dial.give_up = give_up;
    if (!is_new) progress_->cancel(dial.deadline);
    dial.deadline = progress_->at(
        give_up, [this, slot] { finish_dial(slot, hindered() ? hindered_from(slot) : no_answer_of(slot)); });
  }
  if (is_new) attempt_dial(slot);
}

void Attachment::attempt_dial(Slot slot) {
  if (auto already = established(slot)) return finish_dial(slot, NeighbourPtr(already));
  auto socket = directory_.dial(slot);
  if (!socket) {
    if (socket.error().code == std::errc::resource_unavailable_try_again) return retry_dial(slot);
    // We can reach nobody any more. The other end may still connect to us, as either end may.
    if (hindered()) return retry_dial(slot);
    return finish_dial(slot, std::unexpected(socket.error()));
  }
  auto opened = Connection::open(std::move(*socket), slot, progress_, *this);
  if (!opened) return finish_dial(slot, std::unexpected(opened.error()));
  const auto& connection = *opened;
  // A socket can outlive its process in a child that holds a copy of it and will never answer.
  if (connection->process_ended() || connection->uid() != user_) {
    connection->close_quietly();
    return finish_dial(slot, nobody_in(slot));
  }
  dials_[slot].connection = connection;
  remember(connection);
  if (!connection->send_hello(slot_, incarnation_, greeting_)) connection->end();  // which tries again
}

void Attachment::retry_dial(Slot slot) {
  Dial& dial = dials_[slot];
  dial.connection.reset();
  dial.next_attempt = progress_->at(Clock::now() + dial.backoff, [this, slot] { attempt_dial(slot); });
  dial.backoff = std::min(dial.backoff * 2, max_backoff);
}

void Attachment::finish_dial(Slot slot, const Result<NeighbourPtr>& result) {
  const auto found = dials_.find(slot);
  if (found == dials_.end()) return;
  Dial dial = std::move(found->second);
  dials_.erase(found);
  progress_->cancel(dial.deadline);
  progress_->cancel(dial.next_attempt);
  if (dial.connection && !dial.connection->established()) {
    forget(dial.connection);
    dial.connection->close_quietly();
  }
  {
    const std::scoped_lock hold(mutex_);
    for (auto& waiter : dial.waiters) waiter->result = result;
  }
  dialed_.notify_all();
  for (auto& waiter : dial.waiters) {
    if (waiter->done) waiter->done(result);
  }
}

void Attachment::refused(const Connection::Ptr& connection, Refusal why) {
  const Slot slot = connection->dialed();
  forget(connection);
  connection->close_quietly();
  const auto found = dials_.find(slot);
  if (found == dials_.end() || found->second.connection != connection) return;
  if (why == Refusal::duplicate) return retry_dial(slot);
  found->second.connection.reset();
  finish_dial(slot, nobody_in(slot));
}

}  // namespace weir::link
