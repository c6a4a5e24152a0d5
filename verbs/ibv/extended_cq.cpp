// Extended completion queues: ibv_create_cq_ex(3), polled with ibv_start_poll, ibv_next_poll, ibv_end_poll
// and the ibv_wc_read_* functions, and ibv_modify_cq(3).
//
// A poll takes one completion at a time. What the poller has not asked for stays in the queue pair, so
// destroying that queue pair purges it. Between start and end the poller holds the lock, unless the CQ was
// created as single threaded. Timestamps are read when the completion is taken: the NIC has no clock of its
// own, and its completions carry no time.
#include <cerrno>
#include <ctime>

#include "verbs/faulty/calls.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

namespace {

constexpr std::uint64_t known_wc_flags = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                                         IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                         IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr std::uint32_t known_masks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
constexpr std::uint32_t known_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

std::uint64_t read_clock_ns(clockid_t which) {
  timespec now{};
  ::clock_gettime(which, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

bool take(ibv_cq_ex* cq) {
  rnic::WorkCompletion completion;
  if (cq_of(cq).nic_cq->poll({&completion, 1}) != 1) return false;
  ExtendedPoll& poll = *cq_of(cq).extended;
  to_verbs(completion, poll.current);
  if (poll.faulty != nullptr) judge_completion(*poll.faulty, poll.current);
  cq->status = poll.current.status;
  cq->wr_id = poll.current.wr_id;
  if (poll.stamps) {
    poll.clock_ns = read_clock_ns(CLOCK_MONOTONIC);
    poll.wallclock_ns = read_clock_ns(CLOCK_REALTIME);
  }
  return true;
}

// If it returns true, the lock is held until end_poll().
bool take_first(ibv_cq_ex* cq) {
  ExtendedPoll& poll = *cq_of(cq).extended;
  if (!poll.single_threaded) poll.mutex.lock();
  if (take(cq)) return true;
  if (!poll.single_threaded) poll.mutex.unlock();
  return false;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  if (NicProcess* const nic = cq_of(cq).extended->faulty)
    if (const int error = refusal(*nic, faults::Call::start_poll)) return error;
  const bool found = take_first(cq) || (gave_way_after_empty_poll(cq_of(cq)) && take_first(cq));
  if (!found) return ENOENT;
  after_full_poll(cq_of(cq));
  return 0;
}

int next_poll(ibv_cq_ex* cq) { return take(cq) ? 0 : ENOENT; }

void end_poll(ibv_cq_ex* cq) {
  ExtendedPoll& poll = *cq_of(cq).extended;
  if (!poll.single_threaded) poll.mutex.unlock();
}

const ibv_wc& current(ibv_cq_ex* cq) { return cq_of(cq).extended->current; }

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return current(cq).opcode; }
std::uint32_t read_vendor_err(ibv_cq_ex* cq) { return current(cq).vendor_err; }
std::uint32_t read_byte_len(ibv_cq_ex* cq) { return current(cq).byte_len; }
__be32 read_imm_data(ibv_cq_ex* cq) { return current(cq).imm_data; }
std::uint32_t read_qp_num(ibv_cq_ex* cq) { return current(cq).qp_num; }
std::uint32_t read_src_qp(ibv_cq_ex* cq) { return current(cq).src_qp; }
unsigned int read_wc_flags(ibv_cq_ex* cq) { return current(cq).wc_flags; }
std::uint32_t read_slid(ibv_cq_ex* cq) { return current(cq).slid; }
std::uint8_t read_sl(ibv_cq_ex* cq) { return current(cq).sl; }
std::uint8_t read_dlid_path_bits(ibv_cq_ex* cq) { return current(cq).dlid_path_bits; }
std::uint64_t read_completion_ts(ibv_cq_ex* cq) { return cq_of(cq).extended->clock_ns; }
std::uint64_t read_completion_wallclock_ns(ibv_cq_ex* cq) { return cq_of(cq).extended->wallclock_ns; }

// A reader that the program did not ask for stays null, as on other devices: a call to it crashes at once.
void install_readers(ibv_cq_ex& cq, std::uint64_t wanted) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_wc_flags = read_wc_flags;
  if (wanted & IBV_WC_EX_WITH_BYTE_LEN) cq.read_byte_len = read_byte_len;
  if (wanted & IBV_WC_EX_WITH_IMM) cq.read_imm_data = read_imm_data;
  if (wanted & IBV_WC_EX_WITH_QP_NUM) cq.read_qp_num = read_qp_num;
  if (wanted & IBV_WC_EX_WITH_SRC_QP) cq.read_src_qp = read_src_qp;
  if (wanted & IBV_WC_EX_WITH_SLID) cq.read_slid = read_slid;
  if (wanted & IBV_WC_EX_WITH_SL) cq.read_sl = read_sl;
  if (wanted & IBV_WC_EX_WITH_DLID_PATH_BITS) cq.read_dlid_path_bits = read_dlid_path_bits;
  if (wanted & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) cq.read_completion_ts = read_completion_ts;
  if (wanted & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
    cq.read_completion_wallclock_ns = read_completion_wallclock_ns;
}

}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const std::uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
  // Refuse unknown flags: a program that got a CQ would go on to call readers that do not exist.
  if ((attr->wc_flags & ~known_wc_flags) || (attr->comp_mask & ~known_masks) || (flags & ~known_flags)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_pd* const domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : nullptr;
  const bool wrong_domain =
      (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && (domain == nullptr || pd_of(domain).parent == nullptr);
  if (wrong_domain || attr->cqe > rnic::max_cqe || attr->comp_vector > INT32_MAX) {
    errno = EINVAL;
    return nullptr;
  }
  Cq* const cq = create_cq(context, static_cast<int>(attr->cqe), attr->cq_context, attr->channel,
                           static_cast<int>(attr->comp_vector));
  if (cq == nullptr) return nullptr;
  cq->extended = std::make_unique<ExtendedPoll>();
  cq->extended->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  NicProcess& nic = *context_of(context).nic;
  cq->extended->faulty = nic.faults() != nullptr ? &nic : nullptr;
  cq->extended->stamps =
      attr->wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
  if (domain != nullptr) {
    cq->domain = &pd_of(domain);
    cq->domain->users.fetch_add(1);
  }
  install_readers(cq->ex, attr->wc_flags);
  return &cq->ex;
}

// Every completion event is raised at once. A request for exactly that succeeds; moderation is refused, as
// the device's capabilities (cq_mod_caps) announce.
int modify_cq(ibv_cq*, ibv_modify_cq_attr* attr) {
  if (attr->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  return attr->moderate.cq_count <= 1 && attr->moderate.cq_period == 0 ? 0 : EOPNOTSUPP;
}

}  // namespace weir::verbs
