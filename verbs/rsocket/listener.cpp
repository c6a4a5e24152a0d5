#include "verbs/rsocket/listener.hpp"

#include <algorithm>
#include <cerrno>

#include "verbs/rsocket/service.hpp"

namespace weir::rsocket {

Listener::Listener(rdma_event_channel* channel, int backlog, Owner& owner)
    : channel_(channel),
      backlog_(std::clamp(static_cast<std::size_t>(std::max(backlog, 0)), least_backlog, most_backlog)),
      owner_(owner) {}

int Listener::start() {
  return Service::instance().watch(channel_->fd, [this] { serve(); });
}

void Listener::stop() {
  Service::instance().forget(channel_->fd);
  half_made_.clear();
}

void Listener::serve() {
  while (auto event = next_event(channel_)) {
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      request(std::move(*event));
    } else if (event->type == RDMA_CM_EVENT_ESTABLISHED) {
      established(event->id);
    } else {
      // Its peer gave up before the connection was made.
      std::erase_if(half_made_, [&](const Half& half) { return half.id.get() == event->id; });
    }
  }
}

void Listener::request(CmEvent event) {
  Half half{IdPtr(event.id), nullptr};
  const auto peers = parse_greeting(event.private_data);
  const bool full = half_made_.size() + waiting_.load() >= backlog_;
  if (!peers || full || prepare(half, *peers) != 0) {
    rdma_reject(event.id, nullptr, 0);
    return;
  }
  half_made_.push_back(std::move(half));
}

int Listener::prepare(Half& half, const Greeting& peers) {
  auto pipe = Pipe::make(half.id.get(), owner_.options_to_inherit());
  if (!pipe) return pipe.error();
  half.pipe = std::move(*pipe);
  half.pipe->begin(peers);
  const auto greeting = encode(half.pipe->greeting());
  rdma_conn_param answer{};
  answer.private_data = greeting.data();
  answer.private_data_len = greeting.size();
  answer.flow_control = 1;
  answer.rnr_retry_count = 7;  // without end: the peer may be slow to look for our messages
  return rdma_accept(half.id.get(), &answer) == 0 ? 0 : errno;
}

void Listener::established(rdma_cm_id* id) {
  const auto found = std::find_if(half_made_.begin(), half_made_.end(),
                                  [&](const Half& half) { return half.id.get() == id; });
  if (found == half_made_.end()) return;
  Connection made{open_channel(), std::move(found->id), std::move(found->pipe)};
  half_made_.erase(found);
  if (!made.channel) return;  // no descriptor left: the peer sees the end of the connection
  if (rdma_migrate_id(made.id.get(), made.channel.get()) != 0) return;
  waiting_.fetch_add(1);
  owner_.accepted(std::move(made));
}

}  // namespace weir::rsocket
