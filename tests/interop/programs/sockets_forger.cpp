// A hostile program on the host of one end of a TCP connection: it knows the connection and its bytes, as
// another user there may guess them, and tries to get its own bytes accepted for the connection over RDMA.
//
//   sockets_forger HOST PORT SECRET_FILE      a server of Redis's protocol under `weir run --sockets`
//
// Its requests without the secret must be refused. A request with the secret is accepted, which shows that
// the refusals are no accident. Then it answers the server's proof with that same proof, which must end the
// link. Afterwards the TCP connections must still be intact.
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "sockets/far_address.hpp"
#include "sockets/seal.hpp"
#include "sockets/secret.hpp"

namespace {

using namespace weir::sockets;
using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}
void check(bool good, const char* what) {
  if (!good) give_up(std::string(what) + ": " + std::strerror(errno));
}

class Victim {
 public:
  Victim(const char* host, const char* port) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    check(::inet_pton(AF_INET, host, &address_.sin_addr) == 1, "inet_pton");
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    check(::connect(fd_, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0, "connect");
    socklen_t size = sizeof own_;
    check(::getsockname(fd_, reinterpret_cast<sockaddr*>(&own_), &size) == 0, "getsockname");
  }

  void talk() {
    for (int i = 0; i < 30; ++i) {
      const std::string question = "PING an-answer-of-many-bytes\r\n",
                        answer = "$23\r\nan-answer-of-many-bytes\r\n";
      check(::send(fd_, question.data(), question.size(), 0) == static_cast<ssize_t>(question.size()),
            "send");
      std::string got(answer.size(), '\0');
      check(::recv(fd_, got.data(), got.size(), MSG_WAITALL) == static_cast<ssize_t>(got.size()), "recv");
      if (got != answer) give_up("the server answered " + got);
      note(sent_, sent_bytes_, question);
      note(received_, received_bytes_, answer);
    }
  }

  FarRequest::End own() const { return end_of(own_); }
  FarRequest::End peer() const { return end_of(address_); }
  const sockaddr_in& address() const { return address_; }
  Conversation proof(weir::hash::SipKey key) const {
    return {.sent = sent_.beginning(key, sent_bytes_), .received = received_.beginning(key, received_bytes_)};
  }

 private:
  static FarRequest::End end_of(const sockaddr_in& of) {
    return {.address = address_bytes(reinterpret_cast<const sockaddr*>(&of)), .port = ntohs(of.sin_port)};
  }
  static void note(FirstBytes& first, std::uint64_t& bytes, std::string text) {
    const iovec piece{text.data(), text.size()};
    first.note(bytes, {&piece, 1}, text.size());
    bytes += text.size();
  }

  int fd_ = -1;
  sockaddr_in address_{}, own_{};
  FirstBytes sent_, received_;
  std::uint64_t sent_bytes_ = 0, received_bytes_ = 0;
};

// One attempt to pass for the other end.
class Attempt {
 public:
  Attempt(const sockaddr_in& to, const FarRequest& request) : channel_(rdma_create_event_channel()) {
    check(channel_ != nullptr && rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    sockaddr_in there = to;
    constexpr int longest_ms = 2000;
    check(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&there), longest_ms) == 0, "resolve");
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id_, longest_ms) == 0, "route");
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    ibv_qp_init_attr attributes{};
    attributes.cap = {
        .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 80};
    attributes.qp_type = IBV_QPT_RC;
    check(rdma_create_qp(id_, nullptr, &attributes) == 0, "rdma_create_qp");
    region_ = ibv_reg_mr(id_->pd, hello_.data(), hello_.size(), IBV_ACCESS_LOCAL_WRITE);
    check(region_ != nullptr, "ibv_reg_mr");
    ibv_sge piece = whole_hello();
    ibv_recv_wr receive{}, *bad = nullptr;
    receive.sg_list = &piece;
    receive.num_sge = 1;
    check(ibv_post_recv(id_->qp, &receive, &bad) == 0, "ibv_post_recv");
    const auto bytes = bytes_of(request);
    rdma_conn_param parameters{};
    parameters.private_data = bytes.data();
    parameters.private_data_len = static_cast<std::uint8_t>(bytes.size());
    parameters.retry_count = parameters.rnr_retry_count = 7;
    check(rdma_connect(id_, &parameters) == 0, "rdma_connect");
    taken_ = next() == RDMA_CM_EVENT_ESTABLISHED;
  }
  ~Attempt() {
    rdma_destroy_qp(id_);
    ibv_dereg_mr(region_);
    rdma_destroy_id(id_);
    rdma_destroy_event_channel(channel_);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool taken() const { return taken_; }

  // The server's own hello, sent back to it.
  void echo() {
    ibv_wc done{};
    const auto until = Clock::now() + std::chrono::seconds(20);
    while (ibv_poll_cq(id_->recv_cq, 1, &done) == 0)
      if (Clock::now() > until) give_up("the server says no hello");
    if (done.status != IBV_WC_SUCCESS || !read_hello(hello_)) give_up("the server's hello makes no sense");
    ibv_sge piece = whole_hello();
    ibv_send_wr send{}, *bad = nullptr;
    send.opcode = IBV_WR_SEND;
    send.sg_list = &piece;
    send.num_sge = 1;
    check(ibv_post_send(id_->qp, &send, &bad) == 0, "ibv_post_send");
  }

  rdma_cm_event_type next() {
    pollfd one{channel_->fd, POLLIN, 0};
    constexpr int longest_ms = 30'000;
    if (::poll(&one, 1, longest_ms) != 1) give_up("nothing happens");
    rdma_cm_event* event = nullptr;
    check(rdma_get_cm_event(channel_, &event) == 0, "rdma_get_cm_event");
    const auto type = event->event;
    rdma_ack_cm_event(event);
    return type;
  }
  void expect(rdma_cm_event_type wanted) {
    if (const auto came = next(); came != wanted)
      give_up(std::string("not ") + rdma_event_str(wanted) + " but " + rdma_event_str(came));
  }

 private:
  ibv_sge whole_hello() {
    return {.addr = reinterpret_cast<std::uintptr_t>(hello_.data()),
            .length = static_cast<std::uint32_t>(hello_.size()),
            .lkey = region_->lkey};
  }

  rdma_event_channel* channel_;
  rdma_cm_id* id_ = nullptr;
  ibv_mr* region_ = nullptr;
  FarBytes hello_{};
  bool taken_ = false;
};

FarRequest request_for(const Victim& conversation, weir::hash::SipKey secret,
                       Speaker speaker = Speaker::request) {
  const auto key = sealing_key(secret, speaker, conversation.own(), conversation.peer());
  const auto proof = conversation.proof(key);
  FarRequest request;
  request.ring_bytes = least_ring_bytes;
  request.asker = conversation.own();
  request.asked = conversation.peer();
  request.sent_16 = proof.sent.after_16;
  request.received_16 = proof.received.after_16;
  return request;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) give_up("usage: sockets_forger HOST PORT SECRET_FILE");
  const auto secret = read_secret(words[3]);
  if (!secret) give_up(secret.error());
  Victim first(words[1], words[2]), second(words[1], words[2]);
  first.talk();

  // The server may not have looked for its peer yet.
  const auto taken = [&](const Victim& conversation) {
    const auto until = Clock::now() + std::chrono::seconds(8);
    for (;;) {
      auto attempt = std::make_unique<Attempt>(conversation.address(), request_for(conversation, *secret));
      if (attempt->taken()) return attempt;
      if (Clock::now() > until) give_up("a request with the secret is refused, too");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  const auto of_first = taken(first);
  second.talk();

  struct Forged {
    const char* what;
    FarRequest request;
  };
  FarRequest elsewhere = request_for(second, *secret), of_another = request_for(second, *secret);
  elsewhere.asker.address[15] ^= 8;
  of_another.sent_16 = request_for(first, *secret).sent_16;
  of_another.received_16 = request_for(first, *secret).received_16;
  for (const auto& forged :
       {Forged{"without the secret", request_for(second, {})},
        Forged{"with another speaker's proof", request_for(second, *secret, Speaker::asked)},
        Forged{"with another connection's proof", of_another}, Forged{"from another address", elsewhere}}) {
    const Attempt attempt(second.address(), forged.request);
    if (attempt.taken()) give_up(std::string("taken ") + forged.what);
    std::printf("refused %s\n", forged.what);
  }

  const auto of_second = taken(second);
  of_second->echo();
  of_second->expect(RDMA_CM_EVENT_DISCONNECTED);
  std::printf("an echo ends the link\n");
  of_first->expect(RDMA_CM_EVENT_DISCONNECTED);
  std::printf("so does silence\n");
  first.talk();
  second.talk();
  std::printf("TCP is whole\n");
  return 0;
}
