"""Live experiments that are interrupted: nothing of them may be left behind."""

import os
import pathlib
import signal
import subprocess
import time

from .report import Report

# The time limit of each wait, in seconds: far more than needed.
TIMEOUT = 60
# A run that does not end by itself within the limit.
ENDLESS = ["--set", "live.duration=600 s", "--set", "live.warm_up=0 s"]
PEER = pathlib.Path("sctp/usrsctp/peer")


def namespaces(process: int) -> set[str]:
    """Returns the network namespaces of the threads of a process."""
    found = set()
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/ns/net"):
        try:
            found.add(os.readlink(task))
        except OSError:
            continue
    return found


def used_namespaces() -> set[str]:
    """Returns the network namespaces that have processes."""
    processes = (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
    return set().union(*(namespaces(process) for process in processes))


def wait_until(what: str, holds) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {TIMEOUT} s: {what}")
        time.sleep(0.05)


def interrupt(eyas: pathlib.Path, stack: str, signal_to_send: signal.Signals, out: pathlib.Path) -> tuple[bool, str]:
    """Starts an experiment, ends it with a signal once its hosts run, and checks what is left behind."""
    command = [str(eyas), "lab", "run", "cmt-live", *ENDLESS, "--set", f"live.stack={stack}", "--out", str(out)]
    environment = {**os.environ, "EYAS_USRSCTP_PEER": str(pathlib.Path(os.environ["EYAS_PEERS"]) / PEER)}
    own = os.readlink("/proc/self/ns/net")
    log = out.with_suffix(".log").open("wb")
    run = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
    try:
        hosts: set[str] = set()

        def hosts_run() -> bool:
            if run.poll() is not None:
                raise RuntimeError(f"the run ended early: {out.with_suffix('.log').read_text(errors='replace')[-300:]}")
            hosts.update(namespaces(run.pid) - {own})
            return len(hosts) >= 2

        wait_until("both hosts run", hosts_run)
        # Until it has produced some data.
        time.sleep(0.5)
        run.send_signal(signal_to_send)
        status = run.wait(TIMEOUT)
        wait_until("the namespaces are empty", lambda: not hosts & used_namespaces())
        left = [str(file.name) for file in out.rglob("*") if file.is_file()]
        # Only finished runs may leave results, and no run has finished.
        no_partial = all(not name.endswith(".tmp") and not name.startswith("result") for name in left)
        return no_partial, f"status {status}, {len(hosts)} hosts gone, files: {' '.join(left) or 'none'}"
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
        log.close()


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Interrupts experiments with each signal, with our own stack and with programs on the hosts."""
    if os.geteuid() != 0:
        report.skip("lab", "all", "live experiments need root")
        return
    for stack in ("eyas", "mptcp", "usrsctp"):
        if stack == "usrsctp" and not (pathlib.Path(os.environ["EYAS_PEERS"]) / PEER).exists():
            report.skip("lab", "cmt-live with usrsctp", "its peer is not built; run interop/install sctp to see why")
            continue
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            name = f"cmt-live over {stack}, ended by {number.name}"
            try:
                good, detail = interrupt(eyas, stack, number, directory / f"lab-{stack}-{number.name}")
            except Exception as error:  # one broken case must not hide the others
                good, detail = False, f"{type(error).__name__}: {error}"
            report.check("lab", name, good, detail)
