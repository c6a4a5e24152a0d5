// The calls of librdmacm that create no connection: addresses, options, lists, the application's own events.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/cm/cm_fixture.hpp"
#include "verbs/cm/endpoint.hpp"

namespace weir::cm {
namespace {

class RdmaCmCalls : public testing::Test {
 protected:
  Events client_;
};

TEST_F(RdmaCmCalls, addresses_may_be_given_in_the_hints_alone) {
  auto to = loopback(7471);
  rdma_addrinfo hints{}, *info = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_dst_addr = as_address(to);
  hints.ai_dst_len = sizeof to;
  ASSERT_EQ(rdma_getaddrinfo(nullptr, nullptr, &hints, &info), 0);
  EXPECT_EQ(info->ai_dst_len, sizeof to);
  EXPECT_EQ(std::memcmp(info->ai_dst_addr, &to, sizeof to), 0);
  EXPECT_EQ(info->ai_qp_type, IBV_QPT_RC);
  rdma_freeaddrinfo(info);
  EXPECT_NE(rdma_getaddrinfo("no such host.invalid", nullptr, &hints, &info), 0);
}

// libfabric asks so for the address of a card, which has no loopback.
TEST_F(RdmaCmCalls, localhost_without_a_port_to_listen_at_is_where_others_reach_this_host) {
  rdma_addrinfo hints{}, *info = nullptr;
  hints.ai_flags = RAI_PASSIVE | RAI_FAMILY;
  hints.ai_family = AF_INET;
  hints.ai_port_space = RDMA_PS_TCP;
  ASSERT_EQ(rdma_getaddrinfo("localhost", "7471", &hints, &info), 0);
  EXPECT_TRUE(endpoint_of(info->ai_src_addr)->is_loopback());
  rdma_freeaddrinfo(info);

  int count = 0;
  ibv_context** const devices = rdma_get_devices(&count);
  ASSERT_GT(count, 0);
  ibv_gid first{};  // IPv4 comes first, and loopback last
  ASSERT_EQ(ibv_query_gid(devices[0], 1, 0, &first), 0);
  rdma_free_devices(devices);
  Endpoint of_the_device;
  std::copy_n(first.raw, of_the_device.ip.size(), of_the_device.ip.begin());
  ASSERT_EQ(rdma_getaddrinfo("localhost", nullptr, &hints, &info), 0);
  const auto listens_at = endpoint_of(info->ai_src_addr);
  EXPECT_EQ(listens_at->is_loopback(), of_the_device.is_loopback() || !of_the_device.is_v4());
  rdma_freeaddrinfo(info);

  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", nullptr, &hints, &info), 0);
  EXPECT_TRUE(endpoint_of(info->ai_src_addr)->is_loopback()) << "it was meant";
  rdma_freeaddrinfo(info);
}

extern "C" {
// Of newer headers than the system's.
int rdma_resolve_addrinfo(rdma_cm_id*, const char*, const char*, const rdma_addrinfo*);
int rdma_query_addrinfo(rdma_cm_id*, rdma_addrinfo**);
int rdma_write_cm_event(rdma_cm_id*, int, int, std::uint64_t);
}

// A number: the system's enumeration does not have the newer types.
int type_of(const EventRef& event) {
  int type;
  std::memcpy(&type, &event->event, sizeof type);
  return type;
}

TEST_F(RdmaCmCalls, an_identifier_is_of_a_port_space_that_there_is) {
  for (const int number : {0, 0x0107, 0x0200, -1}) {
    rdma_cm_id* id = nullptr;
    errno = 0;
    EXPECT_EQ(rdma_create_id(client_.get(), &id, nullptr, static_cast<rdma_port_space>(number)), -1);
    EXPECT_EQ(errno, EINVAL) << number;
  }
}

TEST_F(RdmaCmCalls, names_are_resolved_with_an_event) {
  const IdRef id = make_id(client_);
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_query_addrinfo(id.get(), &info), -1);
  ASSERT_EQ(rdma_resolve_addrinfo(id.get(), "127.0.0.1", "7471", nullptr), 0);
  EXPECT_EQ(type_of(client_.next()), 16);
  ASSERT_EQ(rdma_query_addrinfo(id.get(), &info), 0);
  EXPECT_EQ(info->ai_dst_addr->sa_family, AF_INET);
  rdma_freeaddrinfo(info);
}

TEST_F(RdmaCmCalls, applications_may_queue_events_of_their_own_up_to_a_limit) {
  const IdRef id = make_id(client_);
  constexpr int user = 18;
  ASSERT_EQ(rdma_write_cm_event(id.get(), user, 5, 0x1122334455667788), 0);
  {
    const auto event = client_.next();
    EXPECT_EQ(type_of(event), user);
    EXPECT_EQ(event->status, 5);
    std::uint64_t argument = 0;
    std::memcpy(&argument, &event->param, sizeof argument);
    EXPECT_EQ(argument, 0x1122334455667788u);
  }
  EXPECT_EQ(rdma_write_cm_event(id.get(), RDMA_CM_EVENT_ESTABLISHED, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  int queued = 0;
  while (queued < 100'000 && rdma_write_cm_event(id.get(), user, 0, 0) == 0) ++queued;
  EXPECT_EQ(errno, ENOBUFS);
  EXPECT_LT(queued, 100'000);
}

TEST_F(RdmaCmCalls, options_are_checked) {
  const IdRef id = make_id(client_);
  std::uint8_t tos = 16, exponent = 14, too_big = 32;
  int on = 1;
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos), 0);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, 1), 0);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &too_big, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof on), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, 99, &on, sizeof on), -1);
  EXPECT_EQ(errno, ENOSYS);
}

class Multicast : public RdmaCmCalls {
 protected:
  // Bound, so that it has a device.
  IdRef member() {
    IdRef id = make_id(client_, RDMA_PS_UDP);
    auto here = loopback(0);
    EXPECT_EQ(rdma_bind_addr(id.get(), as_address(here)), 0) << std::strerror(errno);
    return id;
  }
  sockaddr_in group_ = loopback(0, "239.1.2.3");
};

TEST_F(Multicast, joining_tells_how_to_send_to_the_group) {
  const IdRef id = member();
  int tag = 0;
  ASSERT_EQ(rdma_join_multicast(id.get(), as_address(group_), &tag), 0) << std::strerror(errno);
  {
    const auto joined = client_.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
    const rdma_ud_param& ud = joined->param.ud;
    EXPECT_EQ(ud.private_data, &tag);
    EXPECT_EQ(ud.qp_num, 0xffffffU);
    EXPECT_EQ(ud.qkey, static_cast<std::uint32_t>(RDMA_UDP_QKEY));
    EXPECT_EQ(ud.ah_attr.is_global, 1);
    EXPECT_EQ(ud.ah_attr.port_num, 1);
    const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
    EXPECT_EQ(std::memcmp(ud.ah_attr.grh.dgid.raw, mapped, sizeof mapped), 0);
  }
  EXPECT_EQ(rdma_leave_multicast(id.get(), as_address(group_)), 0);
  EXPECT_EQ(rdma_leave_multicast(id.get(), as_address(group_)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST_F(Multicast, a_group_that_was_left_before_its_event_was_taken_brings_none) {
  const IdRef id = member();
  ASSERT_EQ(rdma_join_multicast(id.get(), as_address(group_), nullptr), 0);
  ASSERT_EQ(rdma_leave_multicast(id.get(), as_address(group_)), 0);
  auto other = loopback(0, "239.1.2.4");
  ASSERT_EQ(rdma_join_multicast(id.get(), as_address(other), nullptr), 0);
  EXPECT_EQ(client_.expect(RDMA_CM_EVENT_MULTICAST_JOIN)->param.ud.ah_attr.grh.dgid.raw[15], 4);
}

TEST_F(Multicast, members_with_a_queue_pair_receive_what_is_sent_to_the_group) {
  const IdRef sender = member(), first = member(), second = member();
  std::array<std::array<char, 64>, 3> buffers{};
  std::array<ibv_mr*, 3> regions{};
  ibv_ah* group_handle = nullptr;
  std::uint32_t qpn = 0;
  const IdRef* const all[] = {&sender, &first, &second};
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const IdRef& id = *all[i];
    make_qp(id);
    regions[i] = rdma_reg_msgs(id.get(), buffers[i].data(), buffers[i].size());
    ASSERT_NE(regions[i], nullptr);
    if (i > 0) {
      ASSERT_EQ(rdma_post_recv(id.get(), nullptr, buffers[i].data(), buffers[i].size(), regions[i]), 0);
    }
    rdma_cm_join_mc_attr_ex attr{};
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    attr.join_flags = i == 0 ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;
    attr.addr = as_address(group_);
    ASSERT_EQ(rdma_join_multicast_ex(id.get(), &attr, nullptr), 0) << std::strerror(errno);
    auto joined = client_.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
    if (i > 0) continue;
    group_handle = ibv_create_ah(id->pd, &joined->param.ud.ah_attr);
    qpn = joined->param.ud.qp_num;
  }
  ASSERT_NE(group_handle, nullptr) << std::strerror(errno);
  std::strcpy(buffers[0].data(), "to all");
  ASSERT_EQ(rdma_post_ud_send(sender.get(), nullptr, buffers[0].data(), 8, regions[0], 0, group_handle, qpn),
            0);
  ibv_wc wc{};
  for (std::size_t i = 1; i < buffers.size(); ++i) {
    ASSERT_EQ(rdma_get_recv_comp(all[i]->get(), &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_STREQ(buffers[i].data() + sizeof(ibv_grh), "to all");
    EXPECT_EQ(rdma_leave_multicast(all[i]->get(), as_address(group_)), 0);
  }
  EXPECT_EQ(rdma_get_send_comp(sender.get(), &wc), 1);
  ibv_destroy_ah(group_handle);
  for (ibv_mr* region : regions) rdma_dereg_mr(region);
}

TEST_F(Multicast, a_group_that_there_is_no_place_for_is_an_event_of_its_own) {
  ::setenv("WEIR_WIRE", "0", 1);  // no packet leaves this host
  const IdRef id = member();
  make_qp(id);
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(id->verbs, &device), 0);
  ibv_gid other{};
  other.raw[0] = 0xff;
  for (int i = 0; i < device.max_total_mcast_qp_attach; ++i) {
    std::memcpy(other.raw + 8, &i, sizeof i);
    ASSERT_EQ(ibv_attach_mcast(id->qp, &other, 0), 0) << i;
  }
  ASSERT_EQ(rdma_join_multicast(id.get(), as_address(group_), nullptr), 0);
  client_.expect(RDMA_CM_EVENT_MULTICAST_ERROR, -ENOMEM);
  EXPECT_EQ(rdma_leave_multicast(id.get(), as_address(group_)), -1) << "it was not joined";
  ASSERT_EQ(ibv_detach_mcast(id->qp, &other, 0), 0);
  ASSERT_EQ(rdma_join_multicast(id.get(), as_address(group_), nullptr), 0);
  client_.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
  ::unsetenv("WEIR_WIRE");
}

TEST_F(Multicast, an_address_of_a_group_can_be_resolved) {
  const IdRef id = make_id(client_, RDMA_PS_UDP);
  auto from = loopback(0);
  ASSERT_EQ(rdma_resolve_addr(id.get(), as_address(from), as_address(group_), 1000), 0);
  client_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr);
}

TEST_F(Multicast, is_for_datagrams_with_a_device_and_groups) {
  const IdRef nowhere = make_id(client_, RDMA_PS_UDP);
  EXPECT_EQ(rdma_join_multicast(nowhere.get(), as_address(group_), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  const IdRef id = member();
  auto host = loopback(0);
  EXPECT_EQ(rdma_join_multicast(id.get(), as_address(host), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_cm_join_mc_attr_ex attr{};
  attr.addr = as_address(group_);
  EXPECT_EQ(rdma_join_multicast_ex(id.get(), &attr, nullptr), -1);
  EXPECT_EQ(errno, ENOSYS);
}

// Programs register memory in it before they make a queue pair.
TEST_F(RdmaCmCalls, with_its_device_an_identifier_has_the_devices_protection_domain) {
  Events server;
  const IdRef listener = make_listener(server);
  const IdRef client = make_id(client_);
  EXPECT_EQ(client->pd, nullptr);
  resolve(client, client_, port_of(listener));
  ASSERT_NE(client->pd, nullptr);
  EXPECT_EQ(client->pd->context, client->verbs);
  make_qp(client);
  EXPECT_EQ(client->qp->pd, client->pd);
  ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
  const IdRef request(server.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  EXPECT_EQ(request->pd, client->pd) << "one for all of a device";
}

TEST_F(RdmaCmCalls, an_xrc_receive_queue_is_reported_on_the_identifiers_receive_cq) {
  const IdRef id = make_id(client_, RDMA_PS_TCP);
  auto here = loopback(0);
  ASSERT_EQ(rdma_bind_addr(id.get(), as_address(here)), 0);
  id->qp_type = IBV_QPT_XRC_RECV;
  ibv_qp_init_attr qp{};
  qp.qp_type = IBV_QPT_XRC_RECV;
  qp.cap.max_recv_wr = qp.cap.max_recv_sge = 1;
  ASSERT_EQ(rdma_create_qp(id.get(), nullptr, &qp), 0) << std::strerror(errno);
  ibv_srq_init_attr srq{};
  srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  ASSERT_EQ(rdma_create_srq(id.get(), nullptr, &srq), 0) << std::strerror(errno);
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(id->srq, &number), 0);
  EXPECT_NE(number, 0U);
  EXPECT_NE(id->recv_cq, nullptr);
  rdma_destroy_srq(id.get());
  EXPECT_EQ(id->srq, nullptr);
}

TEST_F(RdmaCmCalls, devices_are_listed_open) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 1);
  EXPECT_STREQ(ibv_get_device_name(list[0]->device), "weir0");
  EXPECT_EQ(list[1], nullptr);
  rdma_free_devices(list);
}

}  // namespace
}  // namespace weir::cm
