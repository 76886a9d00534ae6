"""The pod example, `examples/sctp-pod`, unchanged: containers made of plain namespaces with one shared folder."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "sctp-pod" / "pod.yaml"
# The mount point of the folder in the example, and its group.
MOUNTED = "/run/sctp"
GROUP = 2000
# The users of the containers differ from the folder's owner and from each other.
SIDECAR, PROGRAM = 65534, 1000
TIMEOUT = 20


class Pod:
    """The folder of a pod, and the commands of its containers."""

    def __init__(self, folder: pathlib.Path, eyas: pathlib.Path) -> None:
        self.folder = folder
        os.chown(folder, 0, GROUP)
        # Like an emptyDir volume with a group.
        folder.chmod(0o2777)
        shutil.copy(eyas, folder / "eyas")
        lines = [line.strip() for line in EXAMPLE.read_text().splitlines()]
        self.serve = read_list(lines, "args:")
        self.command = read_list(lines, "command: [socat")
        values = [line.removeprefix("value: ") for line in lines if line.startswith("value: ")]
        self.environment = [f"LD_PRELOAD={values[0]}", f"EYAS_SCTP_SOCKET={values[1]}"]

    def container(self, user: int, command: list[str]) -> list[str]:
        """Returns the command line that runs a command in a container."""
        mount = f'mount -t tmpfs none /run && mkdir {MOUNTED} && mount --bind "$0" {MOUNTED} && exec "$@"'
        identity = [f"--reuid={user}", f"--regid={user}", f"--groups={GROUP}", "--bounding-set=-all"]
        inside = ["sh", "-c", mount, str(self.folder), "setpriv", *identity, "--", *command]
        return ["unshare", "--mount", "--ipc", "--uts", *inside]

    def program(self, command: list[str]) -> list[str]:
        """Returns the command line of a program with the example's environment, without `eyas`."""
        return self.container(PROGRAM, ["env", *self.environment, *command])


def read_list(lines: list[str], prefix: str) -> list[str]:
    """Returns the items of the first list whose line begins with this."""
    line = next(line for line in lines if line.startswith(prefix))
    words = line[line.index("[") + 1 : line.rindex("]")].split(", ")
    return [word.strip('"') for word in words]


@about("socat")
def case_socket_service_pod(world: World) -> None:
    """An unprivileged sidecar, and programs of another user with the library from the shared folder."""
    for program in ("socat", "setpriv", "unshare"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed (Debian: socat, util-linux)")
    with tempfile.TemporaryDirectory(prefix="eyas-pod-") as folder:
        pod = Pod(pathlib.Path(folder), world.eyas_binary)
        serve = pod.container(SIDECAR, [f"{MOUNTED}/eyas", *pod.serve])
        sidecar = Peer("eyas sctp serve", serve, world.file("log"))
        sidecar.wait_until(lambda: "serving" in sidecar.tail())
        # With -d -d, socat prints when it listens.
        listening = [pod.command[0], "-d", "-d", *pod.command[1:]]
        server = Peer("socat", pod.program(listening), world.file("log"))
        try:
            server.wait_until(lambda: "listening on" in server.tail())
            sending = pod.program(["socat", "-u", "STDIN", "SCTP:127.0.0.1:5000"])
            done = subprocess.run(sending, input=b"hello\n", timeout=TIMEOUT, capture_output=True, check=False)
            server.wait_until(lambda: "hello\n" in server.log.read_text(errors="replace"))
            world.report.check("socat", "hello in the example pod", done.returncode == 0, str(done.stderr))
        finally:
            server.stop()
            status = sidecar.stop()
        left = sorted(entry.name for entry in pathlib.Path(folder).iterdir())
        good = status == 0 and left == ["eyas"]
        world.report.check("socat", "the sidecar ends and leaves nothing behind", good, f"{status}, {left}")


CASES = [case_socket_service_pod]
