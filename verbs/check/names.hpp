// Enumerators and numbers as a report shows them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

namespace weir::check {

std::string hex(std::uint64_t);
std::string bytes_text(std::uint64_t);  // "4096 bytes"
std::string range_text(std::uint64_t begin, std::uint64_t length);
std::string access_text(unsigned access);    // "LOCAL_WRITE REMOTE_READ"
std::string attributes_text(unsigned mask);  // "IBV_QP_AV IBV_QP_PATH_MTU"
const char* name_of(ibv_wr_opcode);
const char* name_of(ibv_qp_state);
const char* name_of(ibv_qp_type);
std::string count_of(std::size_t, const char* thing);  // "2 queue pairs"

}  // namespace weir::check
