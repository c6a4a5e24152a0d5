// Indirection tables: ibv_create_rwq_ind_table(3). Queue pairs are made with a table. It never changes, so
// the NIC gets a copy with each queue pair (rnic/ethernet/receive_side_scaling.hpp).
#include <cerrno>

#include "rnic/ethernet/receive_side_scaling.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

std::atomic<int> tables{0};
std::atomic<int> next_number{1};

bool fits(std::uint32_t log_size) {
  return log_size < 32 && (1u << log_size) <= rnic::max_indirection_entries;
}

}  // namespace

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* init) {
  const auto refuse = [](int error) -> ibv_rwq_ind_table* {
    errno = error;
    return nullptr;
  };
  if (init->comp_mask != 0) return refuse(EOPNOTSUPP);
  if (!fits(init->log_ind_tbl_size) || init->ind_tbl == nullptr) return refuse(EINVAL);
  const std::span wqs(init->ind_tbl, std::size_t{1} << init->log_ind_tbl_size);
  for (const ibv_wq* wq : wqs)
    if (wq == nullptr || wq->context != context) return refuse(EINVAL);
  if (tables.fetch_add(1) >= max_indirection_tables) {
    tables.fetch_sub(1);
    return refuse(ENOMEM);
  }
  auto* table = new IndirectionTable{};
  for (ibv_wq* wq : wqs) {
    wq_of(wq).tables.fetch_add(1);
    table->entries.push_back(&wq_of(wq));
  }
  table->table.context = context;
  table->table.ind_tbl_handle = table->table.ind_tbl_num = next_number.fetch_add(1);
  return &table->table;
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  IndirectionTable& t = table_of(table);
  if (t.qps.load() != 0) return EBUSY;
  for (Wq* wq : t.entries) wq->tables.fetch_sub(1);
  delete &t;
  tables.fetch_sub(1);
  return 0;
}

}  // namespace weir::verbs
