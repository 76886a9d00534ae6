"""Live experiments that end before their time: nothing of them may be left."""

import os
import pathlib
import signal
import subprocess
import time

from .report import Report

# Far longer than anything here takes, in seconds.
PATIENCE = 60
# A run without an end, as far as this is concerned.
ENDLESS = ["--set", "live.duration=600 s", "--set", "live.warm_up=0 s"]
PEER = pathlib.Path("sctp/usrsctp/peer")


def namespaces(process: int) -> set[str]:
    """The network namespaces that the threads of a process are in."""
    found = set()
    for task in pathlib.Path(f"/proc/{process}/task").glob("*/ns/net"):
        try:
            found.add(os.readlink(task))
        except OSError:
            continue
    return found


def inhabited() -> set[str]:
    """The network namespaces that anybody is in."""
    processes = (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
    return set().union(*(namespaces(process) for process in processes))


def until(what: str, holds) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} within {PATIENCE} s: no")
        time.sleep(0.05)


def ended(eyas: pathlib.Path, stack: str, how: signal.Signals, out: pathlib.Path) -> tuple[bool, str]:
    """Starts an experiment, ends it once its hosts are at work, and looks for what is left."""
    command = [str(eyas), "lab", "run", "cmt-live", *ENDLESS, "--set", f"live.stack={stack}", "--out", str(out)]
    environment = {**os.environ, "EYAS_USRSCTP_PEER": str(pathlib.Path(os.environ["EYAS_PEERS"]) / PEER)}
    own = os.readlink("/proc/self/ns/net")
    log = out.with_suffix(".log").open("wb")
    run = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
    try:
        hosts: set[str] = set()

        def at_work() -> bool:
            if run.poll() is not None:
                raise RuntimeError(f"it has ended: {out.with_suffix('.log').read_text(errors='replace')[-300:]}")
            hosts.update(namespaces(run.pid) - {own})
            return len(hosts) >= 2

        until("both hosts are at work", at_work)
        # Until there is something to lose.
        time.sleep(0.5)
        run.send_signal(how)
        status = run.wait(PATIENCE)
        until("nobody is left inside", lambda: not hosts & inhabited())
        left = [str(file.name) for file in out.rglob("*") if file.is_file()]
        # What is there is whole: finished runs, of which there is none.
        whole = all(not name.endswith(".tmp") and not name.startswith("result") for name in left)
        return whole, f"status {status}, {len(hosts)} hosts gone, files: {' '.join(left) or 'none'}"
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
        log.close()


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Each kind of end, with our own stack and with programs on the hosts."""
    if os.geteuid() != 0:
        report.skip("lab", "all", "live experiments need root")
        return
    for stack in ("eyas", "mptcp", "usrsctp"):
        if stack == "usrsctp" and not (pathlib.Path(os.environ["EYAS_PEERS"]) / PEER).exists():
            report.skip("lab", "cmt-live with usrsctp", "its peer is not built: interop/install sctp says why")
            continue
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            name = f"cmt-live over {stack}, ended by {how.name}"
            try:
                good, detail = ended(eyas, stack, how, directory / f"lab-{stack}-{how.name}")
            except Exception as error:  # one broken case must not hide the others
                good, detail = False, f"{type(error).__name__}: {error}"
            report.check("lab", name, good, detail)
