// A second process for cm_process_test. It prints one line on its standard output for each event, and ends
// when its standard input ends.
//   cm_peer listen         prints "port N", accepts every request
//   cm_peer hold           prints "port N", never answers a request
//   cm_peer connect PORT   connects
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void say(const char* what) {
  std::printf("%s\n", what);
  std::fflush(stdout);
}

void check(int result, const char* what) {
  if (result == 0) return;
  std::perror(what);
  std::exit(1);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void make_qp(rdma_cm_id* id) {
  ibv_qp_init_attr attr{};
  attr.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  attr.qp_type = IBV_QPT_RC;
  check(rdma_create_qp(id, nullptr, &attr), "rdma_create_qp");
}

void act_on(rdma_cm_event* event, bool hold) {
  switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      check(rdma_resolve_route(event->id, 1000), "rdma_resolve_route");
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      make_qp(event->id);
      check(rdma_connect(event->id, nullptr), "rdma_connect");
      break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      if (hold) break;
      make_qp(event->id);
      check(rdma_accept(event->id, nullptr), "rdma_accept");
      break;
    default:
      break;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) check(-1, "rdma_create_event_channel");
  rdma_cm_id* id = nullptr;
  check(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  if (mode == "connect") {
    auto to = loopback(std::atoi(arguments[2]));
    check(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), "rdma_resolve_addr");
  } else {
    auto any = loopback(0);
    check(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)), "rdma_bind_addr");
    check(rdma_listen(id, 8), "rdma_listen");
    say(("port " + std::to_string(ntohs(rdma_get_src_port(id)))).c_str());
  }
  for (;;) {
    pollfd both[2] = {{.fd = channel->fd, .events = POLLIN, .revents = 0},
                      {.fd = 0, .events = POLLIN, .revents = 0}};
    if (::poll(both, 2, -1) < 0) return 1;
    if (both[1].revents != 0) return 0;
    rdma_cm_event* event = nullptr;
    check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    act_on(event, mode == "hold");
    const std::string line = std::string(rdma_event_str(event->event)) + " " + std::to_string(event->status);
    rdma_ack_cm_event(event);
    say(line.c_str());
  }
}
