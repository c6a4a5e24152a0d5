// The cost of the rule that an RDMA NIC only accesses registered memory: three ways to send the
// contents of a buffer, by size.
//
//   register    ibv_reg_mr, WRITE, ibv_dereg_mr: no copy, a registration for each transfer
//   copy        memcpy into a buffer that is registered once, WRITE from there
//   pool        the data was made in registered memory to begin with: WRITE alone
//
// Two queue pairs of this process are connected to each other. Each line has the microseconds of one
// transfer, median of --repeat; then the times of registration and of memcpy alone, and of mlock + munlock of
// the same memory, which is about the minimum cost of registration on a device that pins pages. Prints a
// table, or with --data columns for registration.gnuplot.
#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t smallest = 4096, largest = 64u << 20;
constexpr int access_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

template <class T>
T* need(T* made, const char* call) {
  if (made == nullptr) throw std::runtime_error(fmt::format("{} failed: {}", call, std::strerror(errno)));
  return made;
}
void need(int error, const char* call) {
  if (error != 0) throw std::runtime_error(fmt::format("{} failed: {}", call, std::strerror(error)));
}

std::byte* map() {
  void* at = ::mmap(nullptr, largest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("mmap failed: not enough memory");
  std::memset(at, 1, largest);
  return static_cast<std::byte*>(at);
}

class Loop {
 public:
  Loop() {
    ibv_device** const devices = need(::ibv_get_device_list(nullptr), "ibv_get_device_list");
    context_ = need(::ibv_open_device(need(devices[0], "an RDMA device")), "ibv_open_device");
    ::ibv_free_device_list(devices);
    pd_ = need(::ibv_alloc_pd(context_), "ibv_alloc_pd");
    cq_ = need(::ibv_create_cq(context_, 16, nullptr, nullptr, 0), "ibv_create_cq");
    for (ibv_qp*& qp : qps_) {
      ibv_qp_init_attr attributes{};
      attributes.send_cq = attributes.recv_cq = cq_;
      attributes.qp_type = IBV_QPT_RC;
      attributes.cap = {
          .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
      qp = need(::ibv_create_qp(pd_, &attributes), "ibv_create_qp");
    }
    connect(qps_[0], qps_[1]->qp_num);
    connect(qps_[1], qps_[0]->qp_num);
  }
  ~Loop() {
    for (ibv_qp* qp : qps_) ::ibv_destroy_qp(qp);
    ::ibv_destroy_cq(cq_);
    ::ibv_dealloc_pd(pd_);
    ::ibv_close_device(context_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  ibv_mr* register_memory(std::byte* at, std::size_t bytes) {
    return need(::ibv_reg_mr(pd_, at, bytes, access_rights), "ibv_reg_mr");
  }

  void write(const ibv_mr& from, const ibv_mr& to, std::size_t bytes) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(from.addr), static_cast<std::uint32_t>(bytes), from.lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(to.addr), .rkey = to.rkey};
    ibv_send_wr* bad = nullptr;
    need(::ibv_post_send(qps_[0], &wr, &bad), "ibv_post_send");
    ibv_wc wc{};
    while (::ibv_poll_cq(cq_, 1, &wc) == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) throw std::runtime_error(::ibv_wc_status_str(wc.status));
  }

 private:
  void connect(ibv_qp* qp, std::uint32_t to) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = access_rights;
    need(::ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "to INIT");
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = to;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.hop_limit = 1;
    need(::ibv_query_gid(context_, 1, 0, &a.ah_attr.grh.dgid), "ibv_query_gid");
    need(::ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "to RTR");
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = 1;
    need(::ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC),
         "to RTS");
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qps_[2] = {};
};

// The median of `repeats`, each the mean of enough rounds to be measured.
template <class Do>
double microseconds(int repeats, std::size_t bytes, Do what) {
  const std::size_t rounds = std::clamp<std::size_t>((64u << 20) / bytes, 2, 2000);
  std::vector<double> took;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < rounds; ++i) what();
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
    took.push_back(all.count() / static_cast<double>(rounds));
  }
  std::nth_element(took.begin(), took.begin() + repeats / 2, took.end());
  return took[static_cast<std::size_t>(repeats / 2)];
}

std::string size_text(std::size_t bytes) {
  return bytes < (1u << 20) ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What registering memory costs beside copying into memory that is registered, by size"};
  int repeats = 5;
  bool data = false;
  app.add_option("--repeat", repeats, "runs per size; the median counts")->check(CLI::Range(1, 99));
  app.add_flag("--data", data, "columns for registration.gnuplot, instead of a Markdown table");
  CLI11_PARSE(app, argc, argv);

  Loop nic;
  std::byte* const source = map();
  std::byte* const staging = map();
  std::byte* const sink = map();
  ibv_mr* const staged = nic.register_memory(staging, largest);
  ibv_mr* const target = nic.register_memory(sink, largest);
  fmt::print(
      "{}", data ? "# bytes register copy pool registration memcpy mlock (microseconds)\n"
                 : "| size | register | copy | pool | registration alone | memcpy alone | mlock + munlock |\n"
                   "|---|---|---|---|---|---|---|\n");
  for (std::size_t bytes = smallest; bytes <= largest; bytes *= 4) {
    const double by_registering = microseconds(repeats, bytes, [&] {
      ibv_mr* const mr = nic.register_memory(source, bytes);
      nic.write(*mr, *target, bytes);
      need(::ibv_dereg_mr(mr), "ibv_dereg_mr");
    });
    const double by_copying = microseconds(repeats, bytes, [&] {
      std::memcpy(staging, source, bytes);
      nic.write(*staged, *target, bytes);
    });
    const double from_pool = microseconds(repeats, bytes, [&] { nic.write(*staged, *target, bytes); });
    const double registration = microseconds(
        repeats, bytes, [&] { need(::ibv_dereg_mr(nic.register_memory(source, bytes)), "ibv_dereg_mr"); });
    const double copy = microseconds(repeats, bytes, [&] {
      std::memcpy(staging, source, bytes);
      asm volatile("" ::: "memory");
    });
    bool locked = true;
    const double pinning = microseconds(repeats, bytes, [&] {
      locked = locked && ::mlock(source, bytes) == 0 && ::munlock(source, bytes) == 0;
    });
    const std::string pin = locked ? fmt::format("{:.2f}", pinning) : data ? "nan" : "refused";
    if (data)
      fmt::print("{} {:.3f} {:.3f} {:.3f} {:.3f} {:.3f} {}\n", bytes, by_registering, by_copying, from_pool,
                 registration, copy, pin);
    else
      fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} |\n", size_text(bytes),
                 by_registering, by_copying, from_pool, registration, copy, pin);
  }
  ::ibv_dereg_mr(staged);
  ::ibv_dereg_mr(target);
}
