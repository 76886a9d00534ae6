"""Third-party programs through `eyas proxy run`, with unreachable IPv6 and with silent IPv6."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

from ..network import DNS, EYAS, BLACKHOLE, ipv4, ipv6
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

NAME = "proxied.eyas.test"
URL = f"https://{NAME}"
# An address that accepts connections and sends nothing.
SILENT = ipv6(DNS)
NETWORKS = (("dead IPv6", ipv6(BLACKHOLE)), ("IPv6 that accepts and stays silent", SILENT))
LISTENER_SCRIPT = "import socket, time; s = socket.create_server(('{}', 443), family=socket.AF_INET6); time.sleep(3600)"
MODULE = "example.org/thing"
WHEEL = "thing-1.2.3-py3-none-any.whl"
# As installed by `interop/install`.
DENO, NODE = (str(pathlib.Path(os.environ.get("EYAS_PEERS", "")) / name / "node_modules" / ".bin" / name)
              for name in ("deno", "node"))


def curl(_: pathlib.Path) -> tuple[list[str], str]:
    return ["curl", "-sS", f"{URL}/page.html"], "loaded from eyas"


def git(files: pathlib.Path) -> tuple[list[str], str]:
    repository = files / "repository.git"
    if not repository.exists():
        setting = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        for command in (
            ["git", "init", "-q", "--bare", str(repository)],
            ["git", "-C", str(repository), *setting, "commit-tree", "-m", "x",
             "4b825dc642cb6eb9a060e54bf8d69288fbee4904"],
        ):
            result = subprocess.run(command, capture_output=True, text=True, check=True)
        tree = ["git", "-C", str(repository)]
        subprocess.run([*tree, "update-ref", "refs/heads/main", result.stdout.strip()], check=True)
        subprocess.run([*tree, "update-server-info"], check=True)
    return ["git", "ls-remote", f"{URL}/repository.git"], "refs/heads/main"


def python(_: pathlib.Path) -> tuple[list[str], str]:
    program = f"import urllib.request as r; print(r.urlopen('{URL}/page.html').read())"
    return [sys.executable, "-c", program], "loaded from eyas"


def pip(files: pathlib.Path) -> tuple[list[str], str]:
    index = files / "simple" / "thing"
    index.mkdir(parents=True, exist_ok=True)
    (index / "index.html").write_text(f'<!doctype html><a href="{URL}/{WHEEL}">{WHEEL}</a>\n')
    about = "thing-1.2.3.dist-info"
    with zipfile.ZipFile(files / WHEEL, "w") as wheel:
        wheel.writestr("thing.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.2.3\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    # Each connection is raced on its own, without retries.
    flags = ["--no-deps", "--no-cache-dir", "--retries", "0", "--index-url", f"{URL}/simple/"]
    return [sys.executable, "-m", "pip", "download", *flags, "thing==1.2.3"], f"Saved ./{WHEEL}"


def node(_: pathlib.Path) -> tuple[list[str], str]:
    return [NODE, "-e", f"fetch('{URL}/page.html').then(r => r.text()).then(console.log)"], "loaded from eyas"


def deno(_: pathlib.Path) -> tuple[list[str], str]:
    return [DENO, "eval", f"console.log(await (await fetch('{URL}/page.html')).text())"], "loaded from eyas"


def npm(files: pathlib.Path) -> tuple[list[str], str]:
    package = {"name": "thing", "dist-tags": {"latest": "1.2.3"}, "versions": {
        "1.2.3": {"name": "thing", "version": "1.2.3", "dist": {"tarball": f"{URL}/thing.tgz"}}}}
    (files / "thing").write_text(json.dumps(package))
    return ["npm", "view", "thing", "version", "--registry", f"{URL}/"], "1.2.3"


def go(files: pathlib.Path) -> tuple[list[str], str]:
    versions = files / MODULE / "@v"
    versions.mkdir(parents=True, exist_ok=True)
    (versions / "v1.0.0.info").write_text('{"Version":"v1.0.0"}')
    (versions / "v1.0.0.mod").write_text(f"module {MODULE}\n")
    with zipfile.ZipFile(versions / "v1.0.0.zip", "w") as archive:
        archive.writestr(f"{MODULE}@v1.0.0/go.mod", f"module {MODULE}\n")
    return ["go", "mod", "download", "-json", f"{MODULE}@v1.0.0"], '"Version": "v1.0.0"'


def wget(_: pathlib.Path) -> tuple[list[str], str]:
    # Debian's wget uses GnuTLS, which takes no CA certificates from the environment.
    return ["wget", "--no-check-certificate", "-qO-", f"{URL}/page.html"], "loaded from eyas"


PROGRAMS = (curl, git, python, pip, node, deno, npm, go, wget)

STATIC = """package main

import (
    "io"
    "net/http"
    "os"
)

func main() {
    client := &http.Client{Transport: &http.Transport{}}
    response, err := client.Get(os.Args[1])
    if err != nil {
        panic(err)
    }
    io.Copy(os.Stdout, response.Body)
}
"""


def static(files: pathlib.Path) -> tuple[list[str], str]:
    """A static program that ignores the proxy variables of its environment."""
    program = files / "static"
    if not program.exists():
        (files / "static.go").write_text(STATIC)
        build = ["go", "build", "-o", str(program), str(files / "static.go")]
        subprocess.run(build, env=os.environ | {"CGO_ENABLED": "0", "GO111MODULE": "off"}, check=True)
    return [str(program), f"{URL}/page.html"], "loaded from eyas"


# Programs that also run without proxy variables, with `--all-traffic`.
WITHOUT_PROXY_VARIABLES = (wget, static)
REQUIRED_PROGRAMS = {static: "go", python: sys.executable, pip: sys.executable, deno: DENO, node: NODE}
# The exit code where no namespace can be created.
NO_NAMESPACE = 113


def environment(world: World, home: pathlib.Path) -> dict[str, str]:
    """Returns an environment in which every program trusts the server and finds none of the user's settings."""
    home.mkdir()
    inherited = ("PATH", "LANG", "GOROOT")
    trust = ("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "npm_config_cafile",
             "PIP_CERT", "DENO_CERT")
    found = {name: os.environ[name] for name in inherited if name in os.environ}
    found |= {name: str(world.authority.file) for name in trust}
    found |= {"HOME": str(home), "GOPROXY": URL, "GOSUMDB": "off", "GOTOOLCHAIN": "local",
              "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
              "DENO_NO_UPDATE_CHECK": "1"}
    # An empty module cache.
    return found | {"GOPATH": str(home / "go"), "GOFLAGS": "-modcacherw"}


@about("proxy")
def case_programs(world: World) -> None:
    """Each program on each of the two networks, without memory; some also without proxy variables."""
    world.server("eyas")
    silent = Peer("silent", world.network.on_server([sys.executable, "-c", LISTENER_SCRIPT.format(SILENT)]),
                  world.directory / "silent.log")
    runs = [(program, []) for program in PROGRAMS] + [(program, ["--all-traffic"]) for program in WITHOUT_PROXY_VARIABLES]
    try:
        for program, flags in runs:
            for network, address in NETWORKS:
                name = " ".join([program.__name__, *flags, f"past {network}"])
                try:
                    world.report.check("proxy", name, *through(world, program, flags, address))
                except Skip as reason:
                    world.report.skip("proxy", name, str(reason))
    finally:
        silent.stop()


def through(world: World, program, flags: list[str], address: str) -> tuple[bool, str]:
    """Runs a program; returns whether it got the expected output over IPv4, and details."""
    needed = REQUIRED_PROGRAMS.get(program, program.__name__)
    if shutil.which(needed) is None:
        raise Skip(f"{needed} is not installed")
    command, expected = program(world.directory / "files")
    proxy = [str(world.eyas_binary), "proxy", "run", *flags, "--json", "--memory", "none",
             "--resolve", f"{NAME}:443:{address},{ipv4(EYAS)}", "--", *command]
    home = world.file("home")
    completed = subprocess.run(proxy, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                               timeout=60, env=environment(world, home), cwd=home, check=False)
    if completed.returncode == NO_NAMESPACE:
        raise Skip("no namespaces can be created here")
    lines = [json.loads(line) for line in completed.stdout.splitlines()]
    reached = [line["connection"] for line in lines if line["connection"]]
    good = completed.returncode == 0 and expected in completed.stderr and bool(reached)
    good = good and all(it["address"] == f"{ipv4(EYAS)}:443" for it in reached)
    times = ", ".join(f"{it['spoke_ms']} ms" for it in reached)
    return good, f"status {completed.returncode}, answered after {times or 'nothing'}" + ("" if good else f"; {completed.stderr[-300:]}")


CASES = [case_programs]
