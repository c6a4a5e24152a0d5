// Version 10 of NCCL's interface.
#define WEIR_NCCL_VERSION 10

#include "nccl/table.inc"
