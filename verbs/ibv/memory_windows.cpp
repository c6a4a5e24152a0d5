// Memory windows: ibv_alloc_mw, ibv_bind_mw, and what IBV_WR_BIND_MW asks for (ibv_alloc_mw(3),
// ibv_bind_mw(3)).
#include <cerrno>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    errno = EINVAL;
    return nullptr;
  }
  const auto key = context_of(pd->context)
                       .adapter()
                       .windows()
                       .allocate(static_cast<rnic::WindowType>(type), pd_of(pd).number);
  if (!key) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* mw = new ibv_mw{pd->context, pd, *key, *key >> 8, type};
  pd_of(pd).users.fetch_add(1);
  return mw;
}

int dealloc_mw(ibv_mw* mw) {
  context_of(mw->context).adapter().release_window(mw->handle << 8);
  drop_user(pd_of(mw->pd));
  delete mw;
  return 0;
}

// Rejects, before anything is posted, another window's key or rights that no window has. Programs pass on a
// region's rights; LOCAL_WRITE among them is ignored.
std::optional<rnic::SendRequest> bind_request(const ibv_mw& mw, std::uint32_t rkey,
                                              const ibv_mw_bind_info& info) {
  constexpr unsigned rights =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
  const unsigned asked = info.mw_access_flags & ~unsigned{IBV_ACCESS_LOCAL_WRITE};
  if (rkey >> 8 != mw.handle || (asked & ~rights) != 0) return std::nullopt;
  if (info.mr == nullptr && info.length != 0) return std::nullopt;
  rnic::SendRequest request;
  request.opcode = rnic::SendOpcode::bind_window;
  request.remote_addr = info.addr;
  request.rkey = rkey;
  request.binding = {info.length, info.mr != nullptr ? info.mr->lkey : 0, asked};
  return request;
}

// The new key is the old one with its low byte incremented. The application knows it at once and may
// send it right after the bind.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  auto request = bind_request(*mw, rkey, bind->bind_info);
  if (!request) return EINVAL;
  request->wr_id = bind->wr_id;
  request->flags = bind->send_flags;
  rnic::QueuePair& nic_qp = *qp_of(qp).nic_qp;
  rnic::PostResult result;
  nic_qp.begin_posting();
  nic_qp.append(*request, result);
  nic_qp.ring_doorbell();
  if (result == rnic::PostResult::ok) mw->rkey = rkey;
  return errno_of(result);
}

}  // namespace weir::verbs
