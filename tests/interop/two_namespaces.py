"""Two network namespaces joined by a wire (veth), like two hosts: any user can make them, and they end with the test.

Both are of one user namespace of their own, so that no privilege is needed. `why_not()` says what a machine forbids.
"""
import pathlib
import subprocess
import time

# For each kind, in the order of the GIDs: a kind's place in this list is its GID index at both ends.
ADDRESSES = {
    "ipv4": {"server": "10.77.0.1", "client": "10.77.0.2"},
    "ipv6": {"server": "fd77::1", "client": "fd77::2"},
    "link_local": {"server": "fe80::77:1%wire", "client": "fe80::77:2%wire"},
}
# With a masquerading router between them (NatNamespaces); the server has no way to the client's address.
BEHIND_NAT = {"server": "10.77.0.1", "client": "10.76.0.2"}
READY_S = 30
# Classic BPF: drops (2) what is UDP over IPv4 or IPv6, and passes (0) the rest.
DROPS_UDP = "9,40 0 0 12,21 0 2 2048,48 0 0 23,5 0 0 2,21 0 3 34525,48 0 0 20,21 0 1 17,6 0 0 2,6 0 0 0"


class TwoNamespaces:
    def __init__(self):
        self.holders = {}
        sleeper = ["sleep", "infinity"]
        self.holders["server"] = self._hold(["unshare", "--user", "--map-root-user", "--net", "--", *sleeper])
        self.holders["client"] = self._hold([*self.enter("server"), "unshare", "--net", "--", *sleeper])
        theirs = str(self.holders["client"].pid)
        self.run("server", "ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", theirs)
        for end in self.holders:
            # No other addresses, and these at once: otherwise the kernel first asks the wire whether another
            # host has them.
            self.run(end, "ip", "link", "set", "wire", "addrgenmode", "none")
            for kind, prefix, at_once in (("ipv4", 24, []), ("ipv6", 64, ["nodad"]), ("link_local", 64, ["nodad"])):
                address = ADDRESSES[kind][end].partition("%")[0]
                self.run(end, "ip", "address", "add", f"{address}/{prefix}", "dev", "wire", *at_once)
            for link in ("lo", "wire"):
                self.run(end, "ip", "link", "set", link, "up")

    def enter(self, end):
        """The words that run a command there."""
        pid = str(self.holders[end].pid)
        return ["nsenter", "--target", pid, "--user", "--net", "--preserve-credentials", "--"]

    def _hold(self, command):
        """Starts the command; returns once the process that becomes it sleeps in its namespace."""
        holder = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + READY_S
        while open(f"/proc/{holder.pid}/comm").read().strip() != "sleep":
            if holder.poll() is not None or time.monotonic() > deadline:
                holder.kill()
                raise OSError(f"{' '.join(command)} does not work here")
            time.sleep(0.005)
        return holder

    def packets_in(self, end):
        """How many UDP packets have arrived there, by IPv4 and IPv6; what a socket gets in one piece counts once."""
        counted = {}
        for table in ("snmp", "snmp6"):
            rows = [line.split() for line in pathlib.Path(f"/proc/{self.holders[end].pid}/net/{table}").read_text().splitlines()]
            if table == "snmp":
                names, values = [row for row in rows if row[0] == "Udp:"]
                counted |= dict(zip((f"Udp4{name}" for name in names), values))
            else:
                counted |= dict(rows)
        return int(counted["Udp4InDatagrams"]) + int(counted.get("Udp6InDatagrams", 0))

    def drop_udp(self):
        """From now on no UDP packet arrives at either end, and nobody is told."""
        for end in self.holders:
            self.run(end, "tc", "qdisc", "add", "dev", "wire", "clsact")
            self.run(end, "tc", "filter", "add", "dev", "wire", "ingress", "bpf", "direct-action", "bytecode", DROPS_UDP)

    def run(self, end, *command):
        subprocess.run([*self.enter(end), *command], check=True)

    def end(self):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()


class NatNamespaces(TwoNamespaces):
    """The client is behind a router, which gives its own address to what it passes on: nftables, masquerade."""

    def __init__(self):
        self.holders = {}
        sleeper = ["sleep", "infinity"]
        self.holders["server"] = self._hold(["unshare", "--user", "--map-root-user", "--net", "--", *sleeper])
        for end in ("router", "client"):
            self.holders[end] = self._hold([*self.enter("server"), "unshare", "--net", "--", *sleeper])
        for end, wire, router in (("server", "10.77.0.1/24", "10.77.0.254/24"), ("client", "10.76.0.2/24", "10.76.0.1/24")):
            theirs = str(self.holders["router"].pid)
            self.run(end, "ip", "link", "add", "wire", "type", "veth", "peer", "name", f"to-{end}", "netns", theirs)
            self.run(end, "ip", "address", "add", wire, "dev", "wire")
            self.run("router", "ip", "address", "add", router, "dev", f"to-{end}")
            for link in ("lo", "wire"):
                self.run(end, "ip", "link", "set", link, "up")
            self.run("router", "ip", "link", "set", f"to-{end}", "up")
        self.run("client", "ip", "route", "add", "default", "via", "10.76.0.1")
        self.run("router", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for rule in ("add table ip nat", "add chain ip nat out { type nat hook postrouting priority 100; }",
                     "add rule ip nat out oifname to-server masquerade"):
            self.run("router", "nft", rule)


def why_not():
    try:
        made = TwoNamespaces()
    except (OSError, subprocess.SubprocessError) as error:
        return f"this machine lets its user join no two network namespaces: {error}"
    made.end()
    return ""
