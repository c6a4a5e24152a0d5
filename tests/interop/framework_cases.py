"""Frameworks on verbs: UCX, libfabric, Open MPI, Gloo, TensorPipe, QEMU. Each may use only verbs, and must report that it
does."""
from case import Case

# ---- UCX and libfabric: their own measuring programs

# UCX's handshake over UD can end in one of these assertions on a busy machine, on RDMA cards, too; the second has been seen to
# come more often the longer a verbs call takes.
UCX_OVER_UD = {r"Assertion .*ep->dest_ep_id == ctl->conn_rep\.src_ep_id": "https://github.com/openucx/ucx/issues/6040",
               r"acked_psn=\d+ must be smaller than current_psn=\d+": "https://github.com/openucx/ucx/issues/8743"}


def ucx(transports, test, **more):
    """The two ends of ucx_perftest meet over TCP, and print a line of numbers after "Final:"."""
    command = ["env", f"UCX_TLS={transports},self", "UCX_NET_DEVICES=weir0:1", "ucx_perftest", "-p", "{port}"]
    name = transports.replace(",", "+")
    return Case(f"ucx.{name}.{test}", "pair", command, [*command, "{host}", "-t", test, "-n", "200", "-w", "10"],
                expect=[r"^Final:\s+200\s+[\d.]+"], needs=["/sys/class/net"], known=UCX_OVER_UD if "ud_v" in transports else {}, **more)


def fabric(endpoint, provider="verbs"):
    command = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "100"]
    return Case(f"fi_pingpong.{endpoint}", "pair", [*command, "-B", "{port}"], [*command, "-P", "{port}", "{host}"],
                expect=[r"^64\s+100\s+=100\s"], needs=["/etc/hosts"])


# ---- Open MPI: programs/mpi_exchange.cpp, with UCX for messages and for windows. UCX says which transport each message takes.


def mpi(part, ranks, transports="rc_v,ud_v"):
    lane = "rc_verbs" if "rc_v" in transports else "ud_verbs"
    name = transports.replace(",", "+")
    return Case(f"open_mpi.{name}.{part}.{ranks}_ranks", "alone",
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "--mca", "pml", "ucx", "--mca", "osc", "ucx",
                 "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x", f"UCX_TLS={transports},self",
                 "-x", "UCX_LOG_LEVEL=info", "{programs}/mpi_exchange", part],
                expect=[rf"^{part}: {ranks} ranks, right$", rf"ep_cfg\[1\]: tag\({lane}/weir0:1\)"],
                needs=["{programs}/mpi_exchange", "/etc/hosts", "/sys/class/net"], known=UCX_OVER_UD)


# The same over libfabric, which can only use the named provider.


def mpi_on_libfabric(part, ranks):
    return Case(f"open_mpi.libfabric.{part}.{ranks}_ranks", "alone",
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "--mca", "pml", "cm", "--mca", "mtl", "ofi",
                 "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm", "{programs}/mpi_exchange", part],
                expect=[rf"^{part}: {ranks} ranks, right$"], needs=["{programs}/mpi_exchange", "/etc/hosts"])


# ---- Gloo: programs/gloo_allreduce.cpp, one process per rank. Its ibverbs transport cannot fall back to
# another.

GLOO = Case("gloo.allreduce", "pair", ["{programs}/gloo_allreduce", "0", "2", "{scratch}"],
            ["{programs}/gloo_allreduce", "1", "2", "{scratch}"], ready="prints:rank 0 joins on ibverbs, .*dev=weir0",
            expect=[r"^rank 1: ring right$", r"^rank 1: halving and doubling right$"],
            expect_server=[r"^rank 0: ring right$", r"^rank 0: halving and doubling right$"],
            needs=["{programs}/gloo_allreduce"])


# ---- TensorPipe: programs/tensorpipe_exchange.cpp. Its channel "basic" moves tensors over the same transport
# as messages.

TENSORPIPE = Case("tensorpipe.ibv", "pair", ["{programs}/tensorpipe_exchange", "serve", "ibv", "{host}:{port}"],
                  ["{programs}/tensorpipe_exchange", "fetch", "ibv", "{host}:{port}"],
                  expect=[r"^20 rounds of 4 tensors there and back over ibv: right$"], expect_server=[r"^served$"],
                  needs=["{programs}/tensorpipe_exchange"])


# ---- QEMU: a virtual machine (its firmware, which finds no disk) migrates between processes, its memory by
# RDMA WRITE.


def migrated(name, *options, expect=()):
    machine = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-m", "64", "-display", "none", "-nodefaults", *options]
    asked = "'migrate rdma:{host}:{port}' 'info migrate' quit"
    return Case(f"qemu.{name}", "served", [*machine, "-incoming", "rdma:{host}:{port}"],
                ["sh", "-c", f"printf '%s\\n' {asked} | exec {' '.join(machine)} -monitor stdio"], ready="rdma",
                expect=[r"Migration status: completed", *expect], needs=["/usr/bin/qemu-system-x86_64"])


FRAMEWORKS = [
    Case("ucx_info", "alone", ["ucx_info", "-d"],
         expect=[r"Transport: rc_verbs\n#\s+Device: weir0:1", r"Transport: ud_verbs\n#\s+Device: weir0:1"]),
    *(ucx("rc_v,ud_v", test) for test in ("tag_lat", "tag_bw", "stream_lat", "stream_bw", "ucp_put_lat", "ucp_put_bw",
                                          "ucp_get", "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap", "ucp_am_lat", "ucp_am_bw")),
    *(ucx("rc_v", test) for test in ("tag_lat", "ucp_put_lat")),
    *(ucx("ud_v", test) for test in ("tag_lat", "stream_lat", "ucp_am_bw")),
    Case("fi_info", "alone", ["fi_info", "-p", "verbs"], expect=[r"domain: weir0$", r"domain: weir0-dgram$"]),
    fabric("msg"),
    fabric("dgram"),
    Case("fi_info.rxm", "alone", ["fi_info", "-p", "verbs;ofi_rxm"], expect=[r"domain: weir0$", r"type: FI_EP_RDM$"]),
    fabric("rdm", "verbs;ofi_rxm"),
    *(mpi(part, ranks) for part in ("ring", "allreduce", "heat", "window") for ranks in (2, 4)),
    *(mpi_on_libfabric(part, 2) for part in ("ring", "allreduce", "heat", "window")),
    *(mpi("heat", ranks, "ud_v") for ranks in (2, 4)),
    GLOO,
    TENSORPIPE,
    migrated("migrated"),
    # All of its memory is then registered at once and sent, including zero pages.
    migrated("migrated_pinned", "-global", "migration.x-rdma-pin-all=on", expect=[r"duplicate: 0 pages"]),
]
