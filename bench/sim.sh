#!/usr/bin/env bash
# Events a second of the simulator on one core: 320 hosts in a fat tree, WebSearch sizes at half load.
#   bench/sim.sh [build/release]
set -euo pipefail
cd "$(dirname "$0")/.."
weir=${1:-build/release}/bin/weir
scenario=fabric/scenarios/websearch-320.toml
begin=$(date +%s.%N)
out=$("$weir" sim "$scenario" --quiet --json --set sample=2ms)
end=$(date +%s.%N)
python3 - "$begin" "$end" <<PYTHON
import json, sys
run = json.loads('''$out''')
seconds = float(sys.argv[2]) - float(sys.argv[1])
print(f"{run['flows']} flows, {run['events'] / 1e6:.2f} M events, {run['packet_hops'] / 1e6:.2f} M packet hops in {seconds:.2f} s, "
      f"reading and planning included: {run['events'] / seconds / 1e6:.2f} M events/s, {run['packet_hops'] / seconds / 1e6:.2f} M hops/s")
PYTHON
