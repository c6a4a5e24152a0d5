// Asynchronous events: queue-pair, work-queue and SRQ events, queued per opened context
// (ibv_get_async_event(3)).
#include <unistd.h>

#include <cerrno>

#include "link/not_cancelled.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

// Further events are dropped; the application can still query the state of the objects concerned.
constexpr std::size_t max_queued = 4096;

struct OpenQueues {
  std::mutex mutex;
  std::vector<Context*> contexts;
};
OpenQueues& open_queues() {
  static auto* queues = new OpenQueues;
  return *queues;
}

ibv_event_type type_of(rnic::AsyncEvent event) {
  switch (event) {
    case rnic::AsyncEvent::qp_fatal:
      return IBV_EVENT_QP_FATAL;
    case rnic::AsyncEvent::qp_request_error:
      return IBV_EVENT_QP_REQ_ERR;
    case rnic::AsyncEvent::qp_access_error:
      return IBV_EVENT_QP_ACCESS_ERR;
    case rnic::AsyncEvent::comm_est:
      return IBV_EVENT_COMM_EST;
    case rnic::AsyncEvent::srq_limit_reached:
      return IBV_EVENT_SRQ_LIMIT_REACHED;
    case rnic::AsyncEvent::qp_last_wqe_reached:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case rnic::AsyncEvent::sq_drained:
      return IBV_EVENT_SQ_DRAINED;
  }
  return IBV_EVENT_QP_FATAL;
}

void enqueue(Context& context, const ibv_async_event& event) {
  const link::NotCancelled whole;
  const std::lock_guard lock(context.async_mutex);
  if (context.async_queue.size() >= max_queued) return;
  context.async_queue.push_back(event);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(context.async_eventfd, &one, sizeof one);
}

// Also counts the event as delivered, under the context's lock. From now on, destroying its object
// waits for the acknowledgement.
bool dequeue(Context& context, ibv_async_event& event) {
  const std::lock_guard lock(context.async_mutex);
  if (context.async_queue.empty()) return false;
  event = context.async_queue.front();
  context.async_queue.pop_front();
  const bool of_the_port = event.event_type == IBV_EVENT_GID_CHANGE ||
                           event.event_type == IBV_EVENT_PORT_ACTIVE ||
                           event.event_type == IBV_EVENT_PORT_ERR;
  if (of_the_port) return true;  // nobody destroys a port, so nothing waits for an ack
  if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
    ++srq_of(event.element.srq).async_delivered;
  else if (event.event_type == IBV_EVENT_WQ_FATAL)
    ++wq_of(event.element.wq).async_delivered;
  else
    ++qp_of(event.element.qp).async_delivered;
  return true;
}

template <class Object>
void acknowledge(Object& object) {
  pthread_mutex_lock(&object.mutex);
  ++object.events_completed;
  pthread_cond_signal(&object.cond);
  pthread_mutex_unlock(&object.mutex);
}

}  // namespace

void open_async_queue(Context& context) {
  const std::lock_guard lock(open_queues().mutex);
  open_queues().contexts.push_back(&context);
}

void close_async_queue(Context& context) {
  const std::lock_guard lock(open_queues().mutex);
  std::erase(open_queues().contexts, &context);
}

void deliver_port_event(ibv_event_type type) {
  ibv_async_event out{};
  out.event_type = type;
  out.element.port_num = 1;
  const std::lock_guard lock(open_queues().mutex);
  for (Context* context : open_queues().contexts) enqueue(*context, out);
}

void deliver_async(rnic::AsyncEvent event, rnic::QueuePair* qp, rnic::SharedReceiveQueue* srq) {
  ibv_async_event out{};
  out.event_type = type_of(event);
  ibv_context* owner = nullptr;
  if (qp != nullptr && qp->config().type == rnic::QpType::work_queue) {
    out.event_type = IBV_EVENT_WQ_FATAL;
    out.element.wq = &static_cast<Wq*>(qp->config().cookie)->wq;
    owner = out.element.wq->context;
  } else if (qp != nullptr && qp->config().cookie != nullptr) {
    out.element.qp = &static_cast<Qp*>(qp->config().cookie)->ex.qp_base;
    owner = out.element.qp->context;
  } else if (srq != nullptr && srq->cookie != nullptr) {
    out.element.srq = &static_cast<Srq*>(srq->cookie)->srq;
    owner = out.element.srq->context;
  }
  const std::lock_guard lock(open_queues().mutex);
  for (Context* context : open_queues().contexts)
    if (&context->verbs.context == owner) enqueue(*context, out);
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  for (;;) {
    std::uint64_t one;
    if (::read(context->async_fd, &one, sizeof one) != sizeof one) return -1;
    // The object may have been destroyed meanwhile, and its events with it.
    if (dequeue(context_of(context), *event)) return 0;
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
      return acknowledge(*event->element.srq);
    case IBV_EVENT_WQ_FATAL:
      return acknowledge(*event->element.wq);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SQ_DRAINED:
      return acknowledge(*event->element.qp);
    default:
      return;
  }
}

}  // extern "C"
