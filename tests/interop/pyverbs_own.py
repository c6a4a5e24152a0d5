#!/usr/bin/env python3
"""Debian's unmodified python3-pyverbs on the software NIC: a Cython extension built against rdma-core's headers, which reaches
parts of the ABI that C++ tests reach only through our own compiler. Run by `weir run` (cases.py)."""
import unittest

import pyverbs.device as device
import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQEX, CqInitAttrEx, PollCqAttr
from pyverbs.mr import DMMR, MR
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 256


class Side:
    """A queue pair with an extended CQ in a parent domain."""

    def __init__(self, context):
        self.pd = PD(context)
        self.domain = ParentDomain(context, ParentDomainInitAttr(pd=self.pd))
        self.cq = CQEX(context, CqInitAttrEx(cqe=8, wc_flags=e.IBV_WC_STANDARD_FLAGS))
        init = QPInitAttrEx(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, pd=self.domain, cap=QPCap(4, 4, 1, 1),
                            comp_mask=e.IBV_QP_INIT_ATTR_PD, sq_sig_all=1)
        self.qp = QP(context, init)
        self.mr = MR(self.domain, SIZE, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)

    def connect(self, context, peer):
        gid = context.query_gid(1, 0)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp.qp_num
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        attr.path_mtu = e.IBV_MTU_1024
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 17, 7, 7, 12
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=GlobalRoute(gid, 0))
        self.qp.to_rts(attr)

    def sge(self):
        return SGE(self.mr.buf, SIZE, self.mr.lkey)

    def wait(self):
        """The opcode, length and status of the next completion."""
        while self.cq.start_poll(PollCqAttr()) != 0:
            pass
        found = self.cq.read_opcode(), self.cq.read_byte_len(), self.cq.status
        self.cq.end_poll()
        return found


class Pyverbs(unittest.TestCase):
    def setUp(self):
        self.context = device.Context(name=device.get_device_list()[0].name.decode())

    def test_the_device_is_listed_and_says_what_it_can(self):
        attributes = self.context.query_device_ex()
        self.assertEqual(attributes.phys_port_cnt_ex, 1)
        self.assertTrue(attributes.odp_caps.general_caps & e.IBV_ODP_SUPPORT)
        self.assertEqual(self.context.query_port(1).state, e.IBV_PORT_ACTIVE)

    def test_a_message_completes_on_an_extended_cq(self):
        one, two = Side(self.context), Side(self.context)
        one.connect(self.context, two)
        two.connect(self.context, one)
        two.qp.post_recv(RecvWR(wr_id=1, sg=[two.sge()], num_sge=1))
        one.mr.write("x" * SIZE, SIZE)
        one.qp.post_send(SendWR(wr_id=2, opcode=e.IBV_WR_SEND, num_sge=1, sg=[one.sge()]))
        self.assertEqual(two.wait(), (e.IBV_WC_RECV, SIZE, e.IBV_WC_SUCCESS))
        self.assertEqual(one.wait()[2], e.IBV_WC_SUCCESS)
        self.assertEqual(two.mr.read(SIZE, 0), b"x" * SIZE)

    def test_device_memory_is_written_by_a_peer(self):
        one, two = Side(self.context), Side(self.context)
        one.connect(self.context, two)
        two.connect(self.context, one)
        with device.DM(self.context, device.AllocDmAttr(length=SIZE)) as memory:
            rights = e.IBV_ACCESS_ZERO_BASED | e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
            with DMMR(two.domain, SIZE, rights, memory, 0) as region:
                one.mr.write("d" * SIZE, SIZE)
                request = SendWR(wr_id=3, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[one.sge()])
                request.set_wr_rdma(region.rkey, 0)
                one.qp.post_send(request)
                self.assertEqual(one.wait()[2], e.IBV_WC_SUCCESS)
                self.assertEqual(memory.copy_from_dm(0, SIZE), b"d" * SIZE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
