// Memory windows: what a bind requires, what it grants, and when it ends (IBA 10.6.7).
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint32_t bindable = access::local_write | access::mw_bind;
constexpr std::uint32_t grant_all = access::remote_write | access::remote_read | access::remote_atomic;

std::uint32_t next_key(std::uint32_t key) { return (key & ~0xffu) | ((key + 1) & 0xff); }

// b binds windows into its region, a uses them.
class Window : public TwoNics {
 protected:
  Window() { connect_pair(); }

  std::uint32_t allocate(WindowType type, std::uint32_t domain = pd) {
    return *b_nic.adapter().windows().allocate(type, domain);
  }
  WcStatus bind(Endpoint& by, std::uint32_t key, const WindowTable::Bind& what) {
    EXPECT_EQ(by.post({.wr_id = 50,
                       .opcode = SendOpcode::bind_window,
                       .flags = send_flag::signaled,
                       .remote_addr = what.addr,
                       .rkey = key,
                       .binding = {what.length, what.lkey, what.access}},
                      {}),
              PostResult::ok);
    const auto wc = by.poll_send();
    EXPECT_TRUE(wc.has_value());
    if (wc && wc->status == WcStatus::success) {
      EXPECT_EQ(wc->opcode, WcOpcode::bind_window);
    }
    return wc ? wc->status : WcStatus::loc_qp_op_err;
  }
  WindowTable::Bind whole(std::uint32_t rights = grant_all) {
    return {.lkey = region.key(), .access = rights, .addr = region.addr(), .length = region.size()};
  }
  WcStatus invalidate(Endpoint& by, std::uint32_t key) {
    EXPECT_EQ(by.post({.wr_id = 51,
                       .opcode = SendOpcode::local_invalidate,
                       .flags = send_flag::signaled,
                       .imm_be = key},
                      {}),
              PostResult::ok);
    const auto wc = by.poll_send();
    return wc ? wc->status : WcStatus::loc_qp_op_err;
  }
  WcStatus write(std::uint32_t key, std::uint64_t addr, std::size_t length) {
    return write(*a, key, addr, length);
  }
  WcStatus write(Endpoint& by, std::uint32_t key, std::uint64_t addr, std::size_t length) {
    EXPECT_EQ(by.write(1, local.sge(0, length), addr, key), PostResult::ok);
    const auto wc = by.poll_send();
    return wc ? wc->status : WcStatus::loc_qp_op_err;
  }
  PostResult send_with_invalidate(std::uint32_t key) {
    return a->post(
        {.wr_id = 2, .opcode = SendOpcode::send_with_invalidate, .flags = send_flag::signaled, .imm_be = key},
        {local.sge(0, 8)});
  }
  void reconnect() {
    settle();
    connect_pair();
  }

  Memory region{b_nic, 4096, bindable}, received{b_nic, 64}, local{a_nic, 4096};
};

TEST_F(Window, grants_what_its_region_does_not) {
  EXPECT_EQ(write(region.key(), region.addr(), 8), WcStatus::rem_access_err);
  reconnect();
  for (const WindowType type : {WindowType::type1, WindowType::type2}) {
    const std::uint32_t key = next_key(allocate(type));
    local.fill(static_cast<std::uint32_t>(type));
    ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
    EXPECT_EQ(write(key, region.addr(), 4096), WcStatus::success);
    EXPECT_EQ(region.part(0, 4096), local.part(0, 4096));
  }
}

TEST_F(Window, ends_where_it_was_bound_to_end) {
  const auto part = [&](std::uint64_t from, std::uint64_t length) {
    WindowTable::Bind bind = whole();
    bind.addr += from;
    bind.length = length;
    return bind;
  };
  struct Row {
    std::int64_t at;
    std::size_t length;
    WcStatus status;
  };
  for (const Row& row : {Row{100, 200, WcStatus::success}, Row{99, 1, WcStatus::rem_access_err},
                         Row{100, 201, WcStatus::rem_access_err}, Row{300, 1, WcStatus::rem_access_err},
                         Row{299, 1, WcStatus::success}}) {
    SCOPED_TRACE(row.at);
    const std::uint32_t key = next_key(allocate(WindowType::type1));
    ASSERT_EQ(bind(*b, key, part(100, 200)), WcStatus::success);
    EXPECT_EQ(write(key, region.addr() + static_cast<std::uint64_t>(row.at), row.length), row.status);
    reconnect();
  }
}

TEST_F(Window, that_is_zero_based_is_addressed_from_its_own_beginning) {
  WindowTable::Bind where = whole(grant_all | access::zero_based);
  where.addr += 512;
  where.length = 64;
  const std::uint32_t key = next_key(allocate(WindowType::type2));
  ASSERT_EQ(bind(*b, key, where), WcStatus::success);
  local.fill(3);
  EXPECT_EQ(write(key, 8, 16), WcStatus::success);
  EXPECT_EQ(region.part(520, 16), local.part(0, 16));
  EXPECT_EQ(write(key, 49, 16), WcStatus::rem_access_err);
}

TEST_F(Window, grants_only_its_rights) {
  struct Row {
    std::uint32_t rights;
    bool writes, reads;
  };
  for (const Row& row : {Row{access::remote_write, true, false}, Row{access::remote_read, false, true}}) {
    const std::uint32_t key = next_key(allocate(WindowType::type1));
    ASSERT_EQ(bind(*b, key, whole(row.rights)), WcStatus::success);
    EXPECT_EQ(write(key, region.addr(), 8), row.writes ? WcStatus::success : WcStatus::rem_access_err);
    reconnect();
    ASSERT_EQ(a->read(1, local.sge(0, 8), region.addr(), key), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, row.reads ? WcStatus::success : WcStatus::rem_access_err));
    reconnect();
  }
}

TEST_F(Window, binds_are_refused_that_break_a_rule) {
  Memory not_bindable(b_nic, 64, access::local_write), read_only(b_nic, 64, access::mw_bind),
      other_domain(b_nic, 64, bindable, Reach::copied, pd + 1);
  const std::uint32_t other_window = allocate(WindowType::type1, pd + 1);
  const auto of = [](Memory& memory, std::uint32_t rights) {
    return WindowTable::Bind{
        .lkey = memory.key(), .access = rights, .addr = memory.addr(), .length = memory.size()};
  };
  WindowTable::Bind too_long = whole(), before = whole(), wraps = whole();
  too_long.length += 1;
  before.addr -= 1;
  wraps.length = UINT64_MAX;
  struct Row {
    const char* what;
    std::uint32_t window;
    WindowTable::Bind bind;
  };
  const std::uint32_t key = next_key(allocate(WindowType::type1));
  for (const Row& row :
       {Row{"region without the right to bind", key, of(not_bindable, access::remote_read)},
        Row{"writes into a region that is not writable", key, of(read_only, access::remote_write)},
        Row{"atomics into a region that is not writable", key, of(read_only, access::remote_atomic)},
        Row{"region of another domain", key, of(other_domain, access::remote_read)},
        Row{"window of another domain", next_key(other_window), whole()},
        Row{"no such window", 0x00ffff01, whole()}, Row{"a region's key", region.key(), whole()},
        Row{"behind the region", key, too_long}, Row{"before the region", key, before},
        Row{"length that wraps", key, wraps}, Row{"local right", key, whole(access::local_write)}}) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(bind(*b, row.window, row.bind), WcStatus::mw_bind_err);
    EXPECT_EQ(b->qp().state(), QpState::err);
    reconnect();
  }
  EXPECT_EQ(bind(*b, key, of(read_only, access::remote_read)), WcStatus::success);
}

TEST_F(Window, that_is_bound_cannot_be_the_region_of_another) {
  const std::uint32_t key = next_key(allocate(WindowType::type1)),
                      second = next_key(allocate(WindowType::type1));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  WindowTable::Bind nested = whole();
  nested.lkey = key;
  EXPECT_EQ(bind(*b, second, nested), WcStatus::mw_bind_err);
}

TEST_F(Window, key_is_no_lkey) {
  const std::uint32_t key = next_key(allocate(WindowType::type1));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  ASSERT_EQ(b->send(1, {region.addr(), 8, key}), PostResult::ok);
  EXPECT_TRUE(completed(b->poll_send(), 1, WcStatus::loc_prot_err));
}

TEST_F(Window, of_type_1_moves_with_a_bind_and_its_old_key_dies) {
  const std::uint32_t first = next_key(allocate(WindowType::type1)), second = next_key(first),
                      third = next_key(second);
  ASSERT_EQ(bind(*b, first, whole()), WcStatus::success);
  ASSERT_EQ(bind(*b, second, whole()), WcStatus::success);
  EXPECT_EQ(write(second, region.addr(), 8), WcStatus::success);
  EXPECT_EQ(write(first, region.addr(), 8), WcStatus::rem_access_err);
  reconnect();
  ASSERT_EQ(bind(*b, third, {}), WcStatus::success) << "to nothing";
  EXPECT_EQ(write(second, region.addr(), 8), WcStatus::rem_access_err);
  EXPECT_FALSE(b_nic.adapter().windows().in_use(region.key()));
}

TEST_F(Window, of_type_1_answers_through_every_queue_pair_of_its_domain) {
  const std::uint32_t key = next_key(allocate(WindowType::type1));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  Endpoint other_a(a_nic), other_b(b_nic), stranger_a(a_nic), stranger_b(b_nic, {.domain = pd + 1});
  connect(other_a, other_b);
  connect(stranger_a, stranger_b);
  EXPECT_EQ(write(other_a, key, region.addr(), 8), WcStatus::success);
  EXPECT_EQ(write(stranger_a, key, region.addr(), 8), WcStatus::rem_access_err);
}

TEST_F(Window, of_type_2_answers_through_the_queue_pair_that_bound_it_alone) {
  const std::uint32_t key = next_key(allocate(WindowType::type2));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  Endpoint other_a(a_nic), other_b(b_nic);
  connect(other_a, other_b);
  EXPECT_EQ(write(other_a, key, region.addr(), 8), WcStatus::rem_access_err);
  EXPECT_EQ(write(key, region.addr(), 8), WcStatus::success);
}

TEST_F(Window, of_type_2_is_bound_again_only_after_it_was_invalidated) {
  const std::uint32_t first = next_key(allocate(WindowType::type2)), second = next_key(first);
  ASSERT_EQ(bind(*b, first, whole()), WcStatus::success);
  EXPECT_EQ(bind(*b, second, whole()), WcStatus::mw_bind_err);
  reconnect();  // the queue pair that had bound it is gone, and the window with it
  ASSERT_EQ(bind(*b, first, whole()), WcStatus::success);
  ASSERT_EQ(invalidate(*b, first), WcStatus::success);
  ASSERT_EQ(bind(*b, second, whole()), WcStatus::success);
  EXPECT_EQ(write(second, region.addr(), 8), WcStatus::success);
  EXPECT_EQ(write(first, region.addr(), 8), WcStatus::rem_access_err);
}

TEST_F(Window, local_invalidate_needs_a_bound_window_of_type_2_of_its_queue_pair) {
  const std::uint32_t one = next_key(allocate(WindowType::type1)),
                      two = next_key(allocate(WindowType::type2));
  Endpoint other_a(a_nic), other_b(b_nic);
  connect(other_a, other_b);
  ASSERT_EQ(bind(*b, one, whole()), WcStatus::success);
  ASSERT_EQ(bind(other_b, two, whole()), WcStatus::success);
  for (const std::uint32_t key : {one, two, region.key(), 0u, next_key(two)}) {
    SCOPED_TRACE(key);
    EXPECT_EQ(invalidate(*b, key), WcStatus::mw_bind_err);
    reconnect();
  }
  EXPECT_EQ(write(other_a, two, region.addr(), 8), WcStatus::success) << "and nothing was invalidated";
  EXPECT_EQ(invalidate(other_b, two), WcStatus::success);
}

TEST_F(Window, is_invalidated_by_a_send) {
  const std::uint32_t key = next_key(allocate(WindowType::type2));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  ASSERT_EQ(b->recv(7, {received.all()}), PostResult::ok);
  ASSERT_EQ(send_with_invalidate(key), PostResult::ok);
  const auto sent = a->poll_send();
  ASSERT_TRUE(completed(sent, 2));
  EXPECT_EQ(sent->opcode, WcOpcode::send);
  const auto wc = b->poll_recv();
  ASSERT_TRUE(completed(wc, 7));
  EXPECT_EQ(wc->opcode, WcOpcode::recv);
  EXPECT_TRUE(wc->has_invalidated);
  EXPECT_FALSE(wc->has_imm);
  EXPECT_EQ(wc->imm_be, key);
  EXPECT_FALSE(b_nic.adapter().windows().in_use(region.key()));
  ASSERT_EQ(bind(*b, next_key(key), whole()), WcStatus::success) << "free again";
  EXPECT_EQ(write(next_key(key), region.addr(), 8), WcStatus::success);
  EXPECT_EQ(write(key, region.addr(), 8), WcStatus::rem_access_err);
}

TEST_F(Window, that_a_send_invalidated_is_dead_before_the_receiver_polls) {
  const std::uint32_t key = next_key(allocate(WindowType::type2));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  ASSERT_EQ(b->recv(7, {received.all()}), PostResult::ok);
  ASSERT_EQ(send_with_invalidate(key), PostResult::ok);
  ASSERT_TRUE(completed(a->poll_send(), 2));
  EXPECT_EQ(write(key, region.addr(), 8), WcStatus::rem_access_err);
}

TEST_F(Window, and_a_bound_one_under_the_same_key_lives_again) {
  const std::uint32_t key = next_key(allocate(WindowType::type2));
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
    EXPECT_EQ(write(key, region.addr(), 8), WcStatus::success);
    ASSERT_EQ(b->recv(7, {received.all()}), PostResult::ok);
    ASSERT_EQ(send_with_invalidate(key), PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 2));
    ASSERT_TRUE(completed(b->poll_recv(), 7));
  }
}

TEST_F(Window, a_send_that_invalidates_what_it_may_not_is_refused) {
  const std::uint32_t one = next_key(allocate(WindowType::type1)),
                      two = next_key(allocate(WindowType::type2));
  Endpoint other_a(a_nic), other_b(b_nic);
  connect(other_a, other_b);
  ASSERT_EQ(bind(*b, one, whole()), WcStatus::success);
  ASSERT_EQ(bind(other_b, two, whole()), WcStatus::success);
  for (const std::uint32_t key : {one, two, region.key(), 0u}) {
    SCOPED_TRACE(key);
    ASSERT_EQ(b->recv(7, {received.all()}), PostResult::ok);
    ASSERT_EQ(send_with_invalidate(key), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
    EXPECT_TRUE(completed(b->poll_recv(), 7, WcStatus::mw_bind_err));
    reconnect();
  }
  EXPECT_EQ(write(other_a, two, region.addr(), 8), WcStatus::success);
}

TEST_F(Window, keeps_its_region_in_use_until_it_is_freed) {
  WindowTable& windows = b_nic.adapter().windows();
  const std::uint32_t key = next_key(allocate(WindowType::type1));
  EXPECT_FALSE(windows.in_use(region.key()));
  ASSERT_EQ(bind(*b, key, whole()), WcStatus::success);
  EXPECT_TRUE(windows.in_use(region.key()));
  b_nic.adapter().release_window(key);
  EXPECT_FALSE(windows.in_use(region.key()));
  EXPECT_EQ(write(key, region.addr(), 8), WcStatus::rem_access_err);
}

TEST_F(Window, as_many_as_the_limit_says_and_not_one_more) {
  WindowTable& windows = b_nic.adapter().windows();
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < max_mws; ++i) {
    const auto key = windows.allocate(WindowType::type1, pd);
    ASSERT_TRUE(key) << i;
    last = *key;
  }
  EXPECT_FALSE(windows.allocate(WindowType::type1, pd));
  b_nic.adapter().release_window(last);
  EXPECT_TRUE(windows.allocate(WindowType::type1, pd));
}

TEST_F(Window, operations_are_those_of_the_services_that_have_them) {
  struct Row {
    QpType type;
    SendOpcode opcode;
    bool allowed;
  };
  for (const Row& row :
       {Row{QpType::uc, SendOpcode::bind_window, true}, Row{QpType::uc, SendOpcode::local_invalidate, true},
        Row{QpType::uc, SendOpcode::send_with_invalidate, false},
        Row{QpType::ud, SendOpcode::bind_window, false}, Row{QpType::ud, SendOpcode::local_invalidate, false},
        Row{QpType::ud, SendOpcode::send_with_invalidate, false}}) {
    Endpoint end(b_nic, {.type = row.type});
    end.to_rts(row.type == QpType::ud ? Qpn() : end.qpn());
    EXPECT_EQ(end.post({.opcode = row.opcode}, {}), row.allowed ? PostResult::ok : PostResult::bad_opcode);
  }
}

}  // namespace
}  // namespace weir::rnic::test
