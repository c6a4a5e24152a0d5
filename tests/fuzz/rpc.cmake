weir_fuzz_target(rpc_frame SOURCES rpc_frame_fuzz.cpp LINK weir_rpc)
