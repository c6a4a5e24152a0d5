"""A weir-server replicates another over RDMA: a snapshot of many packets, then changes. Prints what both have in the end.

  replica_over_rdma.py BINARIES HOST PORT SCRATCH
"""
import pathlib
import subprocess
import sys

FILL = "for i = 1, 5000 do redis.call('set', ARGV[1] .. i, string.rep('x', 1000)) end"


class Servers:
    def __init__(self, binaries, host, port, scratch):
        self.cli = binaries / "weir-cli"
        self.socket = pathlib.Path(scratch) / "replica"
        self.primary = ["--rdma", "-h", host, "-p", port]
        self.server = subprocess.Popen(
            [binaries / "weir-server", "--port", "0", "--unixsocket", self.socket, "--dir", scratch, "--rdma-provider", "weir",
             "--enable-debug-command", "yes", "--rdma-replication", "yes"], stdout=subprocess.PIPE, text=True)
        while "Ready to accept connections" not in self.server.stdout.readline():
            pass

    def ask(self, way, *words):
        return subprocess.run([self.cli, *way, *words], check=True, capture_output=True, text=True).stdout.strip()

    def at_primary(self, *words):
        return self.ask(self.primary, *words)

    def at_replica(self, *words):
        return self.ask(["-s", self.socket], *words)


def main():
    binaries, host, port, scratch = sys.argv[1:]
    servers = Servers(pathlib.Path(binaries), host, port, scratch)
    try:
        servers.at_primary("eval", FILL, "0", "before:")
        servers.at_replica("replicaof", host, port)
        for prefix in ("meanwhile:", "after:"):
            servers.at_primary("eval", FILL, "0", prefix)
            if servers.at_primary("wait", "1", "60000") != "1":
                sys.exit("the replica does not confirm: " + servers.at_replica("info", "replication"))
        link = servers.at_replica("info", "replication").partition("master_link_transport:")[2].split()[0]
        same = servers.at_primary("debug", "digest") == servers.at_replica("debug", "digest")
        print("keys", servers.at_replica("dbsize"), "link", link, "digests", "equal" if same else "differ")
    finally:
        servers.server.kill()
        servers.server.wait()


if __name__ == "__main__":
    main()
