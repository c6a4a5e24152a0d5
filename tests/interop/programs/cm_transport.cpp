// A connection of a chosen type through rdma_cm, which none of Debian's programs makes over UC:
// cm_transport rc|uc server|client ADDRESS PORT. Messages go to and fro; the client says what came back.
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int rounds = 100;
constexpr std::size_t bytes = 4000;  // several packets between hosts
using Message = std::array<char, bytes>;

[[noreturn]] void fails(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}
void must(bool succeeded, const char* what) {
  if (!succeeded) fails(what);
}

void wait_for(int (*get)(rdma_cm_id*, ibv_wc*), rdma_cm_id* id) {
  ibv_wc wc{};
  must(get(id, &wc) == 1, "completion");
  if (wc.status == IBV_WC_SUCCESS) return;
  std::fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
  std::exit(1);
}

rdma_cm_id* make(ibv_qp_type type, const char* address, const char* port, int flags) {
  rdma_addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_qp_type = type;
  hints.ai_port_space = RDMA_PS_IB;
  rdma_addrinfo* found = nullptr;
  must(rdma_getaddrinfo(address, port, &hints, &found) == 0, "rdma_getaddrinfo");
  ibv_qp_init_attr attr{};
  attr.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  attr.sq_sig_all = 1;
  rdma_cm_id* id = nullptr;
  must(rdma_create_ep(&id, found, nullptr, &attr) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

rdma_cm_id* accept_one(rdma_cm_id* listener, Message& incoming, ibv_mr*& registered) {
  must(rdma_listen(listener, 1) == 0, "rdma_listen");
  rdma_cm_id* id = nullptr;
  must(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  registered = rdma_reg_msgs(id, incoming.data(), incoming.size());
  must(rdma_post_recv(id, nullptr, incoming.data(), incoming.size(), registered) == 0, "rdma_post_recv");
  must(rdma_accept(id, nullptr) == 0, "rdma_accept");
  return id;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const ibv_qp_type type = std::string_view(words[1]) == "uc" ? IBV_QPT_UC : IBV_QPT_RC;
  const bool serves = std::string_view(words[2]) == "server";
  static Message incoming, outgoing;
  ibv_mr* in = nullptr;
  rdma_cm_id* listener = nullptr;
  rdma_cm_id* id = make(type, words[3], words[4], serves ? RAI_PASSIVE : 0);
  if (serves) {
    listener = id;
    id = accept_one(listener, incoming, in);
  } else {
    in = rdma_reg_msgs(id, incoming.data(), incoming.size());
    must(rdma_connect(id, nullptr) == 0, "rdma_connect");
  }
  ibv_mr* const out = rdma_reg_msgs(id, outgoing.data(), outgoing.size());
  int same = 0;
  for (int round = 0; round < rounds; ++round) {
    if (!serves) {
      outgoing.fill(static_cast<char>('a' + round % 26));
      must(rdma_post_recv(id, nullptr, incoming.data(), incoming.size(), in) == 0, "rdma_post_recv");
    } else {
      wait_for(rdma_get_recv_comp, id);
      outgoing = incoming;
      must(rdma_post_recv(id, nullptr, incoming.data(), incoming.size(), in) == 0, "rdma_post_recv");
    }
    must(rdma_post_send(id, nullptr, outgoing.data(), outgoing.size(), out, 0) == 0, "rdma_post_send");
    wait_for(rdma_get_send_comp, id);
    if (serves) continue;
    wait_for(rdma_get_recv_comp, id);
    same += incoming == outgoing ? 1 : 0;
  }
  if (!serves) {
    std::printf("%s: %d of %d came back\n", id->qp->qp_type == IBV_QPT_UC ? "uc" : "rc", same, rounds);
    must(rdma_disconnect(id) == 0, "rdma_disconnect");
  }
  rdma_dereg_mr(out);
  rdma_dereg_mr(in);
  rdma_destroy_ep(id);
  if (listener != nullptr) rdma_destroy_ep(listener);
  return same == (serves ? 0 : rounds) ? 0 : 1;
}
