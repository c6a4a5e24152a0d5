// The text of the log's lines. The tracer puts time, process and queue
// pair in front of each.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>

#include "rnic/queue_pair/send_queue.hpp"
#include "rnic/tracer.hpp"

namespace weir::verbs {

const char* operation_name(rnic::SendOpcode);

std::string posted_line(rnic::SendWqe&, rnic::QpType);
std::string receive_line(std::uint64_t wr_id, std::span<const rnic::Sge>);
std::string parked_line(const rnic::SendWqe&, rnic::Tracer::WaitsFor);
std::string completion_line(const rnic::WorkCompletion&);
// What a program registers: "register 0x7f0000001000: 65536 bytes, key 0x101, local-write remote-read"; with
// the address that its peers use, if that is another.
std::string registration_line(const ibv_mr&, std::uint64_t iova, unsigned access);

}  // namespace weir::verbs
