// Failed completions explained: each status by what the NIC tested, and nothing that was not found out.
#include <byteswap.h>

#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/inspection.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

using rnic::AccessRefusal;

unsigned right_needed(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_READ) return IBV_ACCESS_REMOTE_READ;
  const bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  return atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_WRITE;
}

bool names_remote_memory(const PostedSend& send) {
  return send.opcode == IBV_WR_RDMA_WRITE || send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
         send.brings_data_back();
}

std::uint64_t bytes_of(const PostedSend& send) { return send.is_atomic() ? 8 : send.pieces.bytes(); }

// What the NIC can say about the target now, after the request; nothing over another libibverbs.
WeirTarget target_of(const QueuePairRecord& qp, const PostedSend& send) {
  static auto* const inspect = next_call<decltype(weir_inspect_target)>("weir_inspect_target");
  WeirTarget target;
  const rnic::RemoteAccess access{.addr = send.remote_addr,
                                  .length = bytes_of(send),
                                  .rkey = send.rkey,
                                  .need = right_needed(send.opcode)};
  if (inspect != nullptr && qp.qp->qp_type == IBV_QPT_RC) inspect(qp.qp, &access, &target);
  return target;
}

std::string process_of(const WeirTarget& target) {
  if (target.is_ours) return "this process";
  return target.pid != 0 ? "process " + std::to_string(target.pid) : "another process";
}

std::string request_of(const QueuePairRecord& qp, const PostedSend& send) {
  std::string text = std::string(name_of(send.opcode)) + " of " + bytes_text(bytes_of(send));
  if (names_remote_memory(send)) text += " at " + hex(send.remote_addr) + ", rkey " + hex(send.rkey);
  return text + ", wr_id " + hex(send.wr_id) + ", queue pair " + hex(qp.number);
}

class Explanation {
 public:
  Explanation(QueuePairRecord& qp, const PostedSend& send, const ibv_wc& wc, const CallSite& polled_at)
      : qp_(qp), send_(send), wc_(wc), polled_at_(polled_at), target_(target_of(qp, send)) {}

  void print() {
    if (send_.posted_at.caller == nullptr) return not_on_record();
    switch (wc_.status) {
      case IBV_WC_REM_ACCESS_ERR:
        return remote_access();
      case IBV_WC_REM_INV_REQ_ERR:
        return remote_request();
      case IBV_WC_REM_OP_ERR:
        return start(Rule::remote_operation, "the target could not use its own memory for a " + operation())
            .print();
      case IBV_WC_LOC_PROT_ERR:
        return local_protection();
      case IBV_WC_LOC_LEN_ERR:
        return start(Rule::local_length, "a " + operation() + " of a length that it cannot have").print();
      case IBV_WC_LOC_QP_OP_ERR:
        if (send_.brings_data_back() && qp_.attributes.max_rd_atomic == 0)
          return start(Rule::read_depth_zero,
                       "a " + operation() + " on a queue pair whose max_rd_atomic is 0")
              .print();
        break;
      case IBV_WC_RNR_RETRY_EXC_ERR:
        return receiver_not_ready();
      case IBV_WC_RETRY_EXC_ERR:
        return no_answer();
      default:
        break;
    }
    start(Rule::failed_completion, "a " + operation() + " failed: " + status()).print();
  }

 private:
  std::string operation() const { return name_of(send_.opcode); }
  std::string status() const {
    static auto* const text = next_call<decltype(ibv_wc_status_str)>("ibv_wc_status_str");
    return text(wc_.status);
  }

  Report start(Rule rule, const std::string& what) const {
    Report report(rule, what, "posted", send_.posted_at.place());
    report.fact("request", request_of(qp_, send_)).fact("completion", status());
    report.place("polled", polled_at_.place());
    return report;
  }

  void not_on_record() const {
    Report(Rule::failed_completion, "a request failed: " + status(), "polled", polled_at_.place())
        .fact("request", "wr_id " + hex(wc_.wr_id) + ", queue pair " + hex(qp_.number) +
                             "; where it was posted is not on record")
        .print();
  }

  void add_region(Report& report, const char* label) const {
    if (target_.region_length == 0 && target_.region_addr == 0) return;
    report.fact(label, range_text(target_.region_addr, target_.region_length) + ", rights " +
                           access_text(target_.region_access) + ", of " + process_of(target_));
    if (!target_.is_ours) return;
    if (const auto region = objects().region(send_.rkey)) report.place("registered", region->registered);
  }

  void add_swapped(Report& report) const {
    const std::uint64_t swapped = bswap_64(send_.remote_addr);
    if (target_.refusal != AccessRefusal::bounds || swapped < target_.region_addr ||
        swapped - target_.region_addr >= target_.region_length)
      return;
    report.fact("byte order", hex(send_.remote_addr) + " with its bytes reversed is " + hex(swapped) +
                                  ", which is in the region: convert it with ntohll/be64toh");
  }

  void remote_access() const {
    const std::string right = access_text(right_needed(send_.opcode));
    const auto report = [&](const std::string& why) {
      return start(Rule::remote_access, "the target refused a " + operation() + ": " + why);
    };
    if (!target_.is_here) {
      report("remote access error")
          .fact("target", "reached by packets: what it tested is known there; run it under --check, too")
          .print();
      return;
    }
    switch (target_.refusal) {
      case AccessRefusal::no_such_key:
        return unknown_key(report("it has no region with rkey " + hex(send_.rkey)));
      case AccessRefusal::other_domain: {
        Report finding = report("the region is of another protection domain than the target's queue pair");
        return print_with_region(finding);
      }
      case AccessRefusal::region_rights: {
        Report finding = report("the region has no " + right);
        return print_with_region(finding);
      }
      case AccessRefusal::other_window: {
        Report finding = report("the memory window is of another queue pair, or was invalidated");
        return print_with_region(finding);
      }
      case AccessRefusal::bounds: {
        Report finding = report(outside());
        add_swapped(finding);
        return print_with_region(finding);
      }
      case AccessRefusal::queue_pair_rights:
      case AccessRefusal::none:
        break;
    }
    Report finding = report("remote access error");
    finding.fact("now", "the target would accept it: region or rights have changed since");
    print_with_region(finding);
  }

  std::string outside() const {
    const std::uint64_t end = target_.region_addr + target_.region_length;
    if (send_.remote_addr >= target_.region_addr && send_.remote_addr <= end)
      return "it ends " + bytes_text(send_.remote_addr + bytes_of(send_) - end) + " behind its region";
    return "it begins outside its region";
  }

  void print_with_region(Report& report) const {
    add_region(report, "region");
    report.print();
  }

  void unknown_key(Report report) const {
    const auto region = target_.is_ours ? objects().region(send_.rkey) : std::nullopt;
    if (region && !region->lives()) {
      report.fact("region", range_text(region->addr, region->length) + ", of this process, is gone")
          .place("deregistered", region->deregistered)
          .place("registered", region->registered);
    } else {
      report.fact("target", process_of(target_));
    }
    report.print();
  }

  void remote_request() const {
    if (send_.is_atomic() && send_.remote_addr % 8 != 0)
      return start(Rule::remote_request,
                   "the target refused a " + operation() + ": its address is no multiple of 8")
          .print();
    if (send_.brings_data_back() && target_.is_here && !target_.answers_reads)
      return start(Rule::remote_request,
                   "the target refused a " + operation() + ": its queue pair's max_dest_rd_atomic is 0")
          .print();
    if (names_remote_memory(send_) && target_.is_here &&
        target_.refusal == AccessRefusal::queue_pair_rights) {
      Report finding =
          start(Rule::remote_request, "the target refused a " + operation() + ": its queue pair has no " +
                                          access_text(right_needed(send_.opcode)));
      finding.fact("queue pair", "its qp_access_flags are " + access_text(target_.queue_pair_access));
      return print_with_region(finding);
    }
    if (!send_.brings_data_back() && send_.opcode != IBV_WR_RDMA_WRITE)
      return start(Rule::remote_request,
                   "the target refused a " + operation() + ": it is longer than the receive that it found")
          .print();
    start(Rule::remote_request, "the target refused a " + operation() + ": " + status()).print();
  }

  void local_protection() const {
    for (const ibv_sge& piece : send_.pieces.all()) {
      const auto fault = local_fault(piece, qp_.qp->pd, send_.brings_data_back());
      if (!fault) continue;
      Report report = start(Rule::local_protection,
                            "the NIC may not use the memory of a " + operation() + ": " + fault->what);
      report.fact("piece", range_text(piece.addr, piece.length) + ", lkey " + hex(piece.lkey));
      if (fault->region)
        report
            .fact("region", range_text(fault->region->addr, fault->region->length) + ", rights " +
                                access_text(fault->region->access))
            .place("registered", fault->region->registered)
            .place("deregistered", fault->region->deregistered);
      return report.print();
    }
    start(Rule::local_protection, "the NIC may not use the memory of a " + operation()).print();
  }

  void receiver_not_ready() const {
    start(Rule::receiver_not_ready, "the target had no receive posted for a " + operation())
        .fact("patience", "rnr_retry is " + std::to_string(qp_.attributes.rnr_retry) +
                              " on this queue pair (7: for ever)")
        .print();
  }

  void no_answer() const {
    Report report = start(Rule::no_answer, "the target did not answer a " + operation());
    report.fact("patience", "timeout " + std::to_string(qp_.attributes.timeout) + ", retry_cnt " +
                                std::to_string(qp_.attributes.retry_cnt));
    if (target_.is_here) report.fact("target", target_now());
    report.print();
  }

  std::string target_now() const {
    const std::string number = "queue pair " + hex(qp_.attributes.dest_qp_num) + " of " + process_of(target_);
    if (!target_.exists) return number + " does not exist";
    if (target_.state < IBV_QPS_RTR) return number + " is still in the state " + name_of(target_.state);
    if (target_.state > IBV_QPS_SQE) return number + " is in the state " + name_of(target_.state);
    if (!target_.is_connected_to_us) return number + " is connected to another queue pair";
    return number + " is in the state " + name_of(target_.state);
  }

  QueuePairRecord& qp_;
  const PostedSend& send_;
  const ibv_wc& wc_;
  const CallSite polled_at_;
  const WeirTarget target_;
};

}  // namespace

void explain_send(QueuePairRecord& qp, const PostedSend& send, const ibv_wc& wc, const CallSite& polled_at) {
  Explanation(qp, send, wc, polled_at).print();
}

void explain_receive(QueuePairRecord& qp, const PostedReceive& receive, const ibv_wc& wc,
                     const CallSite& polled_at) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return;
  const auto start = [&](Rule rule, const std::string& what) {
    Report report(rule, what, "posted", receive.posted_at.place());
    report.fact("receive", bytes_text(receive.pieces.bytes()) + " on queue pair " + hex(qp.number) +
                               ", wr_id " + hex(receive.wr_id));
    report.place("polled", polled_at.place());
    return report;
  };
  if (wc.status == IBV_WC_LOC_LEN_ERR)
    return start(Rule::receive_too_short,
                 qp.qp->qp_type == IBV_QPT_UD
                     ? "a datagram and the 40 bytes of its GRH did not fit into the receive"
                     : "a message did not fit into the receive that it found")
        .print();
  if (wc.status == IBV_WC_LOC_PROT_ERR) {
    const ibv_pd* const pd = qp.qp->srq != nullptr ? qp.qp->srq->pd : qp.qp->pd;
    for (const ibv_sge& piece : receive.pieces.all()) {
      const auto fault = local_fault(piece, pd, true);
      if (!fault) continue;
      Report report =
          start(Rule::receive_protection, "the NIC may not use the memory of a receive: " + fault->what);
      report.fact("piece", range_text(piece.addr, piece.length) + ", lkey " + hex(piece.lkey));
      if (fault->region)
        report
            .fact("region", range_text(fault->region->addr, fault->region->length) + ", rights " +
                                access_text(fault->region->access))
            .place("registered", fault->region->registered)
            .place("deregistered", fault->region->deregistered);
      return report.print();
    }
  }
  static auto* const text = next_call<decltype(ibv_wc_status_str)>("ibv_wc_status_str");
  start(Rule::failed_completion, std::string("a receive failed: ") + text(wc.status)).print();
}

}  // namespace weir::check
