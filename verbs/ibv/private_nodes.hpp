// The private interface of libibverbs under the version nodes of other releases of rdma-core.
//
// The node's number is the release in which the interface last changed: 25 in rdma-core 28 to 32, then 33, 34
// until 56 (the map file puts these symbols there, as Debian 12 does), 57, 59 until 63, 64 and 65. A program
// built against one of them looks for its symbols there and does not start without them.
#pragma once

#define WEIR_IN_PRIVATE_NODE(name, number) asm(".symver " #name ", " #name "@IBVERBS_PRIVATE_" #number);

#define WEIR_IN_OTHER_PRIVATE_NODES(name) \
  WEIR_IN_PRIVATE_NODE(name, 25)          \
  WEIR_IN_PRIVATE_NODE(name, 33)          \
  WEIR_IN_PRIVATE_NODE(name, 57)          \
  WEIR_IN_PRIVATE_NODE(name, 59)          \
  WEIR_IN_PRIVATE_NODE(name, 64)          \
  WEIR_IN_PRIVATE_NODE(name, 65)
