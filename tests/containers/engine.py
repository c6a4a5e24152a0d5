"""Containers without a container engine: gives each service of a compose file the namespaces that Docker would.

A service gets a network, mount, IPC, UTS and process namespace of its own, or those of the service that it names; a wire to a bridge,
an address, the others' names in /etc/hosts, a /dev/shm of its own. There is no image, seccomp profile, cgroup or dropped capability
here: programs see this system's files, or those below `root`, and the kernel refuses them nothing that Docker's profile would.
Of compose's language this knows what containers/compose.yaml uses, and refuses the rest.
"""
import os
import pathlib
import subprocess
import tempfile
import time

KNOWN = {"image", "build", "command", "healthcheck", "ipc", "shm_size", "network_mode", "pid", "depends_on", "restart"}
READY_S = 120
ALL = ["--net", "--mount", "--ipc", "--uts", "--pid"]


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def owner(services, service, *keys):
    """The service whose namespace this one shares: "service:NAME" for all of `keys`, or itself."""
    named = {services[service].get(key, "") for key in keys}
    if not any(name.startswith("service:") for name in named):
        return service
    if len(named) != 1:
        raise ValueError(f"{service}: shares some of {keys} and not others")
    return named.pop().removeprefix("service:")


class Engine:
    def __init__(self, services, root="", path=None, user=None):
        """`root`: programs run in it, by chroot, as `user`, who must exist there; "": on this system, in a user namespace."""
        for name, service in services.items():
            if unknown := set(service) - KNOWN:
                raise ValueError(f"{name}: {unknown} is not known here")
        self.services, self.root, self.user = services, root, user
        self.path = path or os.environ["PATH"]
        self.folder = tempfile.TemporaryDirectory(prefix="weir-containers-")
        self.started = {}
        self.holders = []
        # Containers here share all of these namespaces or none; the compose file says which.
        self.pods = {name: owner(services, name, "network_mode", "ipc", "pid") for name in services}
        self.addresses = {name: f"172.30.0.{2 + i}" for i, name in enumerate(n for n in services if self.pods[n] == n)}
        self.inside = {}

    def __enter__(self):
        try:
            own = [] if self.root else ["--user", "--map-root-user"]
            self.bridge = self._hold(["unshare", *own, "--net", "--", "sleep", "infinity"])
            self._on_bridge("ip", "link", "add", "bridge", "type", "bridge")
            self._on_bridge("ip", "link", "set", "bridge", "up")
            hosts = pathlib.Path(self.folder.name) / "hosts"
            hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in self.addresses.items()))
            for number, name in enumerate(self.addresses):
                self._make(name, number, hosts)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in [*self.started.values(), *self.holders]:
            process.kill()
            process.wait()
        self.folder.cleanup()

    def _on_bridge(self, *command):
        own = [] if self.root else ["--user", "--preserve-credentials"]
        subprocess.run(["nsenter", "--target", str(self.bridge), *own, "--net", "--", *command], check=True)

    def _hold(self, command):
        """Starts what keeps a namespace alive; returns the pid of its `sleep`."""
        holder = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.holders.append(holder)
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and holder.poll() is None:
            for pid in (holder.pid, *children(holder.pid)):
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "sleep":
                    return pid
            time.sleep(0.005)
        raise OSError(f"{' '.join(command)} does not work here")

    def _make(self, name, number, hosts):
        own = [] if self.root else ["--user", "--preserve-credentials"]
        size = self.services[name].get("shm_size", "64m")
        surroundings = (f"mount -t proc proc {self.root}/proc && mount -t tmpfs -o size={size},mode=1777 tmpfs {self.root}/dev/shm && "
                        f"mount --bind {hosts} {self.root}/etc/hosts && hostname {name} && exec sleep infinity")
        into = ["nsenter", "--target", str(self.bridge), *own, "--"] if own else []
        pid = self._hold([*into, "unshare", "--kill-child", "--fork", *ALL, "--",
                          "sh", "-ec", surroundings])
        self.inside[name] = pid
        self._on_bridge("ip", "link", "add", f"wire{number}", "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self._on_bridge("ip", "link", "set", f"wire{number}", "master", "bridge", "up")
        for words in (["address", "add", f"{self.addresses[name]}/16", "dev", "eth0"], ["link", "set", "eth0", "up"],
                      ["link", "set", "lo", "up"]):
            subprocess.run([*self.enter(name), "ip", *words], check=True)

    def enter(self, name):
        own = [] if self.root else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self.inside[self.pods[name]]), *own, *ALL, "--"]

    def words(self, name, command):
        other = ["chroot", f"--userspec={self.user}", self.root] if self.root else []
        environment = [f"PATH={self.path}", "LC_ALL=C.UTF-8", *(f"{n}={os.environ[n]}" for n in ("ASAN_OPTIONS",) if n in os.environ)]
        return [*self.enter(name), *other, "env", "-i", *environment, *command]

    def run(self, name, command=None):
        done = subprocess.run(self.words(name, command or self.services[name]["command"]), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=READY_S)
        return done.returncode, done.stdout + done.stderr

    def start(self, name):
        log = pathlib.Path(self.folder.name) / f"{name}.log"
        with open(log, "wb") as file:
            self.started[name] = subprocess.Popen(self.words(name, self.services[name]["command"]), stdin=subprocess.DEVNULL,
                                                  stdout=file, stderr=file)
        return log

    def await_healthy(self, name):
        """Waits until its health check succeeds; returns what it wrote."""
        words = self.services[name]["healthcheck"]["test"][1:]
        deadline = time.monotonic() + READY_S
        while True:
            status, said = self.run(name, words)
            log = (pathlib.Path(self.folder.name) / f"{name}.log").read_text()
            if status == 0:
                return log
            if self.started[name].poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{name}: {log}\n{said}")
