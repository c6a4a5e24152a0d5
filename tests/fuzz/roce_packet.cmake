weir_fuzz_target(roce_packet SOURCES roce_packet_fuzz.cpp LINK weir_wire)
