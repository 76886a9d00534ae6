"""ssh, and an sshd for it, with their own keys."""

import pathlib
import shutil
import subprocess

from .report import Skip

SSHD = "/usr/sbin/sshd"
PORT = 2299


class OpenSsh:
    """Both ends, with their keys in one directory. The server is on its host's loopback."""

    def __init__(self, directory: pathlib.Path) -> None:
        if shutil.which("ssh") is None or not pathlib.Path(SSHD).exists():
            raise Skip("ssh and sshd are not both installed (Debian: openssh-server)")
        self.directory = directory
        for name in ("ssh_host", "ssh_user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)], check=True)
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)

    def server(self) -> list[str]:
        """Returns the command that starts sshd."""
        options = {"HostKey": self.directory / "ssh_host", "AuthorizedKeysFile": self.directory / "ssh_user.pub",
                   "ListenAddress": f"127.0.0.1:{PORT}", "StrictModes": "no", "UsePAM": "no", "PidFile": "none"}
        flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return [SSHD, "-D", "-e", "-f", "/dev/null", *flags]

    def client(self, proxy: list[str]) -> list[str]:
        """Returns the ssh command line with this ProxyCommand; the caller appends the host and the remote command."""
        return ["ssh", "-F", "/dev/null", "-i", str(self.directory / "ssh_user"), "-o", "StrictHostKeyChecking=no",
                "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
                "-o", f"ProxyCommand={' '.join(proxy)}"]
