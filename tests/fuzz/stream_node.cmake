weir_fuzz_target(stream_node SOURCES stream_node_fuzz.cpp LINK weir_kv)
