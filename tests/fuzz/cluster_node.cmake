weir_fuzz_target(cluster_node SOURCES cluster_node_fuzz.cpp LINK weir_kv weir_client)
