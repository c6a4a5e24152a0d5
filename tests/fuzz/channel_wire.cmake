weir_fuzz_target(channel_wire SOURCES channel_wire_fuzz.cpp LINK weir_rdma)
