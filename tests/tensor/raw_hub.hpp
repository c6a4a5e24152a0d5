// A hub that answers requests as a test wants, not as a real hub would.
#pragma once

#include <functional>
#include <list>

#include "rdma/engine/arrivals.hpp"
#include "rdma/engine/listener.hpp"
#include "tensor/hub/serving_thread.hpp"
#include "tensor/link/rdma_link.hpp"
#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor::testing_support {

class RawHub {
 public:
  static constexpr std::uint64_t generation = 4711;
  using Answer = std::function<void(RdmaLink&, const wire::Request&)>;

  // `answer` runs in the hub's thread for each request.
  explicit RawHub(Answer answer) : answer_(std::move(answer)) {
    address_ = thread_.run([this] {
      auto engine = rdma::Engine::open(thread_.io(), test_provider());
      if (!engine) throw std::runtime_error(engine.error().what);
      arrivals_ = std::make_shared<rdma::Arrivals>(
          **engine, [engine = *engine] { return RdmaLink::accept(*engine, {.generation = generation}); }, 16);
      auto listener = rdma::Listener::open(**engine, rdma::testing_support::test_address(), arrivals_);
      if (!listener) throw std::runtime_error(listener.error().what);
      listener_ = std::move(*listener);
      accept();
      return "rdma://" + rdma::text(listener_->local());
    });
  }
  ~RawHub() {
    thread_.stop([this] {
      listener_.reset();
      arrivals_.reset();
      for (Session& each : sessions_)
        if (!each.ended) each.link->leave();
    });
  }
  RawHub(const RawHub&) = delete;
  RawHub& operator=(const RawHub&) = delete;

  const std::string& address() const { return address_; }

 private:
  struct Session final : LinkEvents {
    Session(RawHub& owner, RdmaLink& its_link) : hub(owner), link(&its_link) {}
    void on_frame(std::span<const std::byte> frame) override {
      while (!frame.empty()) {
        const wire::Message message = must(wire::take_message(frame));
        if (const auto* request = std::get_if<wire::Request>(&message)) hub.answer_(*link, *request);
      }
    }
    void on_written(const wire::Record&) override {}
    void on_read(std::uint32_t) override {}
    void on_end(const Error&) override {
      ended = true;
      link->leave();
    }
    RawHub& hub;
    RdmaLink* link;
    bool ended = false;
  };
  struct Accepted final : rdma::IoOp<std::error_code, rdma::ConnectionLife*> {
    explicit Accepted(RawHub& owner) : hub(owner) {}
    void complete(std::error_code failed, rdma::ConnectionLife* connection) override {
      RawHub& owner = hub;
      delete this;
      if (connection != nullptr) {
        auto& link = static_cast<RdmaLink&>(*connection);
        link.set_events(owner.sessions_.emplace_back(owner, link));
      }
      if (!failed) owner.accept();
    }
    void destroy() override { delete this; }
    RawHub& hub;
  };
  void accept() {
    if (arrivals_) arrivals_->wait_accept(rdma::AcceptOpPtr(new Accepted(*this)));
  }

  Answer answer_;
  std::string address_;
  std::shared_ptr<rdma::Arrivals> arrivals_;
  std::unique_ptr<rdma::Listener> listener_;
  std::list<Session> sessions_;
  ServingThread thread_{"raw-hub"};
};

}  // namespace weir::tensor::testing_support
