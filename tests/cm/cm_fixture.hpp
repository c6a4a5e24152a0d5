// What the tests of the whole library share: a runtime directory for this program, identifiers that clean up
// after themselves, and waiting for one event.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/scratch_directory.hpp"

namespace weir::cm {

// Set before anything touches RDMA; removed after the libraries have left it. Children find it in the
// environment.
class RuntimeDirectory : public testing::Environment {
 public:
  RuntimeDirectory() {
    // Made first, so it is removed last.
    static const test::ScratchDirectory directory("/dev/shm");
    ::setenv("WEIR_RUNTIME_DIR", (directory.path() + "/link").c_str(), 1);
  }
};
inline const auto* const runtime_directory = testing::AddGlobalTestEnvironment(new RuntimeDirectory);

inline constexpr int patience_ms = 20'000;

inline sockaddr_in loopback(std::uint16_t port, const char* ip = "127.0.0.1") {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, ip, &address.sin_addr), 1);
  return address;
}
inline sockaddr* as_address(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

struct Acknowledge {
  void operator()(rdma_cm_event* event) const { rdma_ack_cm_event(event); }
};
using EventRef = std::unique_ptr<rdma_cm_event, Acknowledge>;

// A channel; waits for its next event for a limited time.
class Events {
 public:
  Events() : channel_(rdma_create_event_channel()) { EXPECT_NE(channel_, nullptr) << std::strerror(errno); }
  ~Events() {
    if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  rdma_event_channel* get() const { return channel_; }
  bool pending(int wait_ms = 0) const {
    pollfd one{.fd = channel_->fd, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, wait_ms) == 1;
  }
  EventRef next() {
    if (!pending(patience_ms)) {
      ADD_FAILURE() << "no event came";
      throw std::runtime_error("no event came");
    }
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(channel_, &event), 0) << std::strerror(errno);
    return EventRef(event);
  }
  EventRef expect(rdma_cm_event_type type, int status = 0) {
    auto event = next();
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type));
    EXPECT_EQ(event->status, status);
    return event;
  }

 private:
  rdma_event_channel* channel_;
};

// Owns an identifier and its queue pair. Acknowledge its events first.
class IdRef {
 public:
  IdRef() = default;
  explicit IdRef(rdma_cm_id* id) : id_(id) {}
  IdRef(IdRef&& other) noexcept : id_(std::exchange(other.id_, nullptr)) {}
  IdRef& operator=(IdRef&& other) noexcept {
    reset();
    id_ = std::exchange(other.id_, nullptr);
    return *this;
  }
  ~IdRef() { reset(); }
  void reset() {
    if (id_ == nullptr) return;
    if (id_->qp != nullptr) rdma_destroy_qp(id_);
    rdma_destroy_id(id_);
    id_ = nullptr;
  }
  rdma_cm_id* get() const { return id_; }
  rdma_cm_id* operator->() const { return id_; }

 private:
  rdma_cm_id* id_ = nullptr;
};

inline IdRef make_id(const Events& events, rdma_port_space space = RDMA_PS_TCP, void* context = nullptr) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(events.get(), &id, context, space), 0) << std::strerror(errno);
  return IdRef(id);
}

inline void make_qp(const IdRef& id) {
  ibv_qp_init_attr attr{};
  attr.cap = {
      .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16};
  attr.qp_type = id->qp_type;
  attr.sq_sig_all = 1;
  ASSERT_EQ(rdma_create_qp(id.get(), nullptr, &attr), 0) << std::strerror(errno);
}

inline IdRef make_listener(const Events& events, rdma_port_space space = RDMA_PS_TCP, int backlog = 8,
                           void* context = nullptr) {
  IdRef id = make_id(events, space, context);
  auto any = loopback(0, "0.0.0.0");
  EXPECT_EQ(rdma_bind_addr(id.get(), as_address(any)), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_listen(id.get(), backlog), 0) << std::strerror(errno);
  return id;
}

inline void resolve(const IdRef& id, Events& events, std::uint16_t port) {
  auto to = loopback(port);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, as_address(to), 1000), 0) << std::strerror(errno);
  events.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(id.get(), 1000), 0) << std::strerror(errno);
  events.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

inline std::uint16_t port_of(const IdRef& id) { return ntohs(rdma_get_src_port(id.get())); }

inline rdma_conn_param parameters(std::string_view private_data = {}) {
  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<std::uint8_t>(private_data.size());
  param.responder_resources = 1;
  param.initiator_depth = 1;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  return param;
}

}  // namespace weir::cm
