// A connection whose client ends without a word:
// ends_connected server ADDRESS PORT | client returns|killed PORT ADDRESS. The server says which event told
// it.
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

void must(bool succeeded, const char* what) {
  if (succeeded) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

rdma_cm_id* make(const char* address, const char* port, int flags) {
  rdma_addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  must(rdma_getaddrinfo(address, port, &hints, &found) == 0, "rdma_getaddrinfo");
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  rdma_cm_id* id = nullptr;
  must(rdma_create_ep(&id, found, nullptr, &attr) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

void serve(rdma_cm_id* listener) {
  must(rdma_listen(listener, 1) == 0, "rdma_listen");
  rdma_cm_id* id = nullptr;
  must(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  must(rdma_accept(id, nullptr) == 0, "rdma_accept");
  // Not before the connection is there at this end, too.
  must(rdma_post_sendv(id, nullptr, nullptr, 0, 0) == 0, "rdma_post_sendv");
  rdma_cm_event* event = nullptr;
  must(rdma_get_cm_event(id->channel, &event) == 0, "rdma_get_cm_event");
  std::printf("%s\n", rdma_event_str(event->event));
  rdma_ack_cm_event(event);
  rdma_destroy_ep(id);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const bool serves = std::string_view(words[1]) == "server";
  if (count != (serves ? 4 : 5)) return 2;
  rdma_cm_id* const id = serves ? make(words[2], words[3], RAI_PASSIVE) : make(words[4], words[3], 0);
  if (serves) {
    serve(id);
    rdma_destroy_ep(id);
    return 0;
  }
  must(rdma_post_recvv(id, nullptr, nullptr, 0) == 0, "rdma_post_recvv");
  must(rdma_connect(id, nullptr) == 0, "rdma_connect");
  ibv_wc told{};
  must(rdma_get_recv_comp(id, &told) == 1 && told.status == IBV_WC_SUCCESS, "rdma_get_recv_comp");
  if (std::string_view(words[2]) == "killed") (void)std::raise(SIGKILL);
  return 0;
}
