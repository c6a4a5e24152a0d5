// A peer that sends the bytes that a test wants, not those of a real reader.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>

#include "tensor/address.hpp"
#include "tensor/link/rdma_link.hpp"
#include "tests/tensor/hub_and_peer.hpp"

namespace weir::tensor::testing_support {

class RawReader final : public LinkEvents {
 public:
  explicit RawReader(const Hub& hub) {
    engine_ = must_rdma(rdma::Engine::open(io_, test_provider()));
    const rdma::Endpoint at = must(resolve(must(parse_address(hub.address()))));
    link_ = must(RdmaLink::connect(*engine_, at, {}, *this, [this] { up_ = true; }));
    run_until([this] { return up_ || end_; });
    if (!up_) throw std::runtime_error("not connected: " + end_->what);
  }
  ~RawReader() override {
    if (!left_) link_->leave();
  }
  RawReader(const RawReader&) = delete;
  RawReader& operator=(const RawReader&) = delete;

  RdmaLink& link() { return *link_; }
  const std::optional<Error>& end() const { return end_; }
  std::deque<wire::Message>& messages() { return messages_; }
  std::deque<wire::Record>& records() { return records_; }

  // Whether the hub ends the connection.
  bool is_thrown_out() {
    run_until([this] { return end_.has_value(); });
    return end_.has_value();
  }
  wire::Message next() {
    run_until([this] { return !messages_.empty() || end_; });
    if (messages_.empty()) throw std::runtime_error("ended: " + end_->what);
    wire::Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  void run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      if (io_.stopped()) io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
  }

  void on_frame(std::span<const std::byte> frame) override {
    while (!frame.empty()) messages_.push_back(must(wire::take_message(frame)));
  }
  void on_written(const wire::Record& record) override { records_.push_back(record); }
  void on_read(std::uint32_t) override {}
  void on_end(const Error& cause) override {
    end_ = cause;
    left_ = true;
    link_->leave();
  }

 private:
  template <class T>
  static T must_rdma(rdma::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().what);
    return *result;
  }

  asio::io_context io_{1};
  rdma::Engine* engine_ = nullptr;
  RdmaLink* link_ = nullptr;
  bool up_ = false, left_ = false;
  std::optional<Error> end_;
  std::deque<wire::Message> messages_;
  std::deque<wire::Record> records_;
};

}  // namespace weir::tensor::testing_support
