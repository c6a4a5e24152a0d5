// Version 9 of NCCL's interface.
#define WEIR_NCCL_VERSION 9

#include "nccl/table.inc"
