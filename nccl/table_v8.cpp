// Version 8 of NCCL's interface.
#define WEIR_NCCL_VERSION 8

#include "nccl/table.inc"
