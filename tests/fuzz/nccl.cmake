weir_fuzz_target(nccl_wire SOURCES nccl_wire_fuzz.cpp LINK weir_nccl)
