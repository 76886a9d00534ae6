"""The servers that eyas is tested against, and eyas as a server."""

import json
import os
import pathlib
import socket
import ssl
import sys

from .certificates import Identity
from .network import CADDY, EYAS, HYPERCORN, ipv4, ipv6
from .process import Peer

# A page that a browser loads; the text shows that it was loaded.
PAGE = "<!doctype html><title>eyas interop</title><p id=page>loaded from eyas</p>\n"


def caddy_configuration(identity: Identity) -> dict:
    """Caddy with all versions of HTTP on one port, and without certificates that it makes itself."""
    listen = [f"{ipv4(CADDY)}:443", f"[{ipv6(CADDY)}]:443"]
    body = "caddy {http.request.proto} {http.request.method}\n"
    answer = {"handler": "static_response", "status_code": 200, "body": body}
    server = {
        "listen": listen,
        "routes": [{"handle": [answer]}],
        "tls_connection_policies": [{}],
        "automatic_https": {"disable": True},
    }
    files = [{"certificate": str(identity.chain), "key": str(identity.key)}]
    return {
        "admin": {"disabled": True},
        "apps": {
            "http": {"servers": {"main": server}},
            "tls": {"certificates": {"load_files": files}},
            "pki": {"certificate_authorities": {"local": {"install_trust": False}}},
        },
    }


def caddy_command(binary: pathlib.Path, directory: pathlib.Path, identity: Identity) -> list[str]:
    """Returns the command that starts Caddy."""
    file = directory / "caddy.json"
    file.write_text(json.dumps(caddy_configuration(identity)))
    return [str(binary), "run", "--config", str(file)]


def hypercorn_command(identity: Identity) -> list[str]:
    """Returns the command that starts Hypercorn, on port 443 with HTTP/3 and on 8443 without."""
    hosts = [ipv4(HYPERCORN), f"[{ipv6(HYPERCORN)}]"]
    command = [sys.executable, "-m", "hypercorn", "eyas_interop.hypercorn_app:app"]
    for host in hosts:
        command += ["--bind", f"{host}:443", "--bind", f"{host}:8443"]
        command += ["--quic-bind", f"{host}:443"]
    return [*command, "--certfile", str(identity.chain), "--keyfile", str(identity.key)]


def serve_command(eyas: pathlib.Path, files: pathlib.Path, identity: Identity) -> list[str]:
    """Returns the command that starts `eyas serve`."""
    files.mkdir(exist_ok=True)
    (files / "page.html").write_text(PAGE)
    command = [str(eyas), "serve", "--listen", f"{ipv4(EYAS)}:443"]
    return [*command, "--cert", str(identity.chain), "--key", str(identity.key), str(files)]


def start(name: str, command: list[str], directory: pathlib.Path) -> Peer:
    """Starts a server with its own home directory, so that it finds none of the user's settings."""
    environment = dict(os.environ)
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        environment[variable] = str(directory)
    return Peer(name, command, directory / f"{name}.log", env=environment, cwd=directory)


def answers_tls(address: str, port: int = 443) -> bool:
    """Returns whether a TLS handshake with the address succeeds."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((address, port), 1) as tcp:
            with context.wrap_socket(tcp, server_hostname="caddy.eyas.test"):
                return True
    except OSError:
        return False
