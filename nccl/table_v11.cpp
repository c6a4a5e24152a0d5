// Version 11 of NCCL's interface.
#define WEIR_NCCL_VERSION 11

#include "nccl/table.inc"
