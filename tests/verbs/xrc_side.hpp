// What the XRC tests share: one-line helpers for domains, SRQs and queue pairs of both kinds, and one
// process's part in a domain that several share.
#pragma once

#include "side.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::verbs_test {

struct Request;
struct Reply;

struct CloseXrcd {  // ibv_close_xrcd is static: no template argument outside of one file
  void operator()(ibv_xrcd* xrcd) const { EXPECT_EQ(ibv_close_xrcd(xrcd), 0) << "teardown refused"; }
};
using Xrcd = std::unique_ptr<ibv_xrcd, CloseXrcd>;

Xrcd open_xrcd(ibv_context* context, int fd = -1, int oflags = O_CREAT);
Srq make_xrc_srq(ibv_pd* pd, ibv_xrcd* xrcd, ibv_cq* cq);
enum class Builders : bool { no, yes };
Qp make_xrc_sender(ibv_pd* pd, ibv_cq* cq, Builders = Builders::no);
Qp make_xrc_target(ibv_xrcd* xrcd);
Qp open_xrc_target(ibv_xrcd* xrcd, std::uint32_t qpn);
// As programs do, sets all attributes of an RC queue pair for both kinds.
int bring_up_xrc(ibv_qp* qp, std::uint32_t destination, Patience = {});
int post_xrc_receive(ibv_srq* srq, std::uint64_t id, ibv_sge sge);
std::uint32_t number_of(ibv_srq* srq);

// A domain's file, and a descriptor of it that processes which are spawned inherit.
class DomainFile {
 public:
  DomainFile();
  ~DomainFile();
  DomainFile(const DomainFile&) = delete;
  DomainFile& operator=(const DomainFile&) = delete;
  int fd() const { return fd_; }

 private:
  test::ScratchDirectory directory_;
  int fd_;
};

// Device, domain, an SRQ with its CQ, and, where asked for, queue pairs of the two kinds.
class XrcSide {
 public:
  static constexpr std::size_t bytes = 1u << 20;
  // What could not be opened is not there, and errno says why.
  XrcSide(MemoryKind kind, int domain, int oflags);
  SideAddress address() const;

  SideMemory memory;
  Context context;
  Pd pd;
  Mr mr;
  Channel channel;
  Cq cq;
  Xrcd xrcd;
  Srq srq;
  Qp target, sender;
};

// The peer program's: an order of those that begin with xrc_.
Reply obey_xrc(std::optional<XrcSide>& side, const Request& request);

}  // namespace weir::verbs_test
