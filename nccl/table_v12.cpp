// Version 12 of NCCL's interface.
#define WEIR_NCCL_VERSION 12

#include "nccl/table.inc"
