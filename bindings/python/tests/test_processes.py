"""Signals, threads, forks and subinterpreters."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import SOON, Server, Silent

import eyas


def python(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts a program in a new interpreter."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(child: subprocess.Popen[str]) -> str:
    out, err = child.communicate(timeout=2 * SOON)
    assert child.returncode == 0, err
    return out


@pytest.mark.parametrize(
    "call",
    [
        "eyas.get(sys.argv[1], timeout=None)",
        "eyas.create_connection(('127.0.0.1', int(sys.argv[2])))",
        "eyas.race(sys.argv[1])",
    ],
)
def test_ctrl_c_ends_a_call_and_closes_its_sockets(silent: Silent, call: str) -> None:
    child = python(
        f"""
        import signal, sys, eyas
        # In background processes, SIGINT is ignored by default.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        # The process stays alive, so that its exit does not close the sockets of the call.
        sys.stdin.read()
        """,
        silent.url,
        str(silent.port),
    )
    # Without it, a call that is not interrupted would block the test forever.
    watchdog = threading.Timer(2 * SOON, child.kill)
    watchdog.start()
    with child:
        try:
            silent.wait_for_connection()
            child.send_signal(signal.SIGINT)
            assert child.stdout is not None
            assert child.stdout.readline() == "interrupted\n"
            silent.wait_until_all_are_closed()
            assert child.poll() is None
            assert output_of(child) == ""
        finally:
            watchdog.cancel()
            child.kill()


@pytest.mark.parametrize(
    "call",
    [
        "sync.connect(*target)",
        # asyncio cancels the main task.
        "asyncio.run(eyas.sctp.connect(*target))",
    ],
)
def test_ctrl_c_closes_the_sockets_of_sctp(call: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.settimeout(2 * SOON)
        call = call.replace("*target", "'127.0.0.1', 5000, udp_port=port, config=Config()")
        with python(
            f"""
            import asyncio, signal, sys
            sys.path.insert(0, sys.argv[1])
            import eyas.sctp
            from conftest import sockets, wait_for_sockets
            from eyas.sctp import Config, sync
            signal.signal(signal.SIGINT, signal.default_int_handler)
            port, before = int(sys.argv[2]), sockets()
            try:
                {call}
            except KeyboardInterrupt:
                print("interrupted")
            wait_for_sockets(lambda: before)
            print("all sockets are closed")
            """,
            str(Path(__file__).parent),
            str(silent.getsockname()[1]),
        ) as child:
            try:
                silent.recv(2048)
                child.send_signal(signal.SIGINT)
                assert output_of(child) == "interrupted\nall sockets are closed\n"
            finally:
                child.kill()


def test_a_signal_handler_may_make_a_call(silent: Silent, server: Server) -> None:
    out = output_of(
        python(
            """
            import signal, sys, eyas

            def fetch(*_):
                print(eyas.get(sys.argv[2], verify=sys.argv[3]).status_code, flush=True)

            signal.signal(signal.SIGALRM, fetch)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                eyas.get(sys.argv[1], timeout=2)
            except eyas.Error as error:
                print(type(error).__name__, flush=True)
            """,
            silent.url,
            f"{server.url}/bytes/1",
            str(server.roots),
        )
    )
    assert out.splitlines()[0] == "200"
    assert len(out.splitlines()) == 2


def test_other_threads_run_during_a_call(silent: Silent) -> None:
    def wait() -> None:
        with pytest.raises(eyas.Error):
            eyas.get(silent.url, timeout=None)

    thread = threading.Thread(target=wait)
    thread.start()
    # If the call held the GIL, this would block until its end.
    silent.wait_for_connection()
    assert thread.is_alive()
    silent.close()
    thread.join(2 * SOON)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "begin",
    [
        "[loop.create_task(eyas.arace(url, timeout=0.2 + n / 100)) for n in range(20)]",
        "[threading.Thread(target=eyas.race, args=(url,), daemon=True).start() for n in range(8)]",
    ],
    ids=["awaited", "in-threads"],
)
def test_python_exits_during_calls(silent: Silent, begin: str) -> None:
    with python(
        f"""
        import asyncio, sys, threading, time, eyas

        class Slow:
            def __del__(self, sleep=time.sleep):
                sleep(0.5)

        async def begin():
            return {begin}

        url, loop = sys.argv[1], asyncio.new_event_loop()
        calls = loop.run_until_complete(begin())
        loop.run_until_complete(asyncio.sleep(0.05))
        # Finalizing the interpreter takes until the calls have ended.
        slow = Slow()
        """,
        silent.url,
    ) as child:
        _, err = child.communicate(timeout=2 * SOON)
    assert child.returncode == 0, err
    assert "panicked" not in err and "Fatal" not in err, err


def test_a_client_shared_by_threads(server: Server) -> None:
    with eyas.Client(base_url=server.url, verify=server.roots, timeout=SOON) as client:

        def size(size: int) -> int:
            return len(client.get(f"/bytes/{size}").content)

        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(size, range(500, 700))) == list(range(500, 700))


def test_a_fork_before_first_use(server: Server) -> None:
    out = output_of(
        python(
            """
            import os, sys, eyas
            child = os.fork()
            if child == 0:
                print(eyas.get(sys.argv[1], verify=sys.argv[2]).status_code, flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """,
            f"{server.url}/bytes/1",
            str(server.roots),
        )
    )
    assert out == "200\n"


def test_a_fork_after_first_use(server: Server) -> None:
    """A child has a runtime of its own, for clients of its parent as well; what is open stays with the parent."""
    out = output_of(
        python(
            """
            import asyncio, os, sys, eyas
            url, roots = sys.argv[1:]
            client = eyas.Client(verify=roots)
            other = eyas.AsyncClient(endpoint=client.endpoint)
            assert client.get(url).is_success
            streams = [client.stream("GET", url) for _ in range(2)]
            unread = [stream.__enter__() for stream in streams]
            listener = eyas.create_server(("127.0.0.1", 0))
            connection = eyas.create_connection(listener.address, 10, tls=False)
            accepted, _ = listener.accept()

            def in_child():
                for _ in range(2):
                    print(client.get(url).status_code)
                print(eyas.get(url, verify=roots).status_code)
                print(asyncio.run(other.get(url)).status_code)
                for call in (unread[0].read, lambda: connection.send(b"x"), listener.accept):
                    try:
                        call()
                    except RuntimeError as error:
                        print("forked" in str(error), flush=True)
                with eyas.create_server(("127.0.0.1", 0)) as own:
                    with eyas.create_connection(own.address, 10, tls=False):
                        own.accept()[0].close()
                # Closing and dropping what is the parent's neither blocks nor ends it.
                connection.close()
                accepted.close()
                listener.close()
                streams[0].__exit__(None, None, None)
                # A grandchild as well.
                grandchild = os.fork()
                if grandchild == 0:
                    print(client.get(url).status_code, flush=True)
                    os._exit(0)
                assert os.waitpid(grandchild, 0)[1] == 0
                sys.exit(0)

            children = []
            for _ in range(3):
                sys.stdout.flush()
                children.append(os.fork())
                if children[-1] == 0:
                    in_child()
                assert os.waitpid(children[-1], 0)[1] == 0
            assert len(unread[0].read()) == len(unread[1].read()) == 1
            connection.sendall(b"still open")
            assert accepted.recv(100) == b"still open"
            print(client.get(url).status_code)
            """,
            f"{server.url}/bytes/1",
            str(server.roots),
        )
    )
    each = "200\n200\n200\n200\nTrue\nTrue\nTrue\n200\n"
    assert out == each * 3 + "200\n"


def test_forked_workers_share_a_memory(server: Server, tmp_path: Path) -> None:
    """The workers of a server that forks, such as gunicorn, and their parent write to one file."""
    out = output_of(
        python(
            """
            import multiprocessing, sys, eyas
            url, roots, memory = sys.argv[1:]
            endpoint = eyas.Endpoint(memory=memory, verify=roots)
            client = eyas.Client(endpoint=endpoint, http3=False)

            def work(turn):
                # A new host each time: a row is written.
                host = f"w{turn}.example"
                port = int(url.rpartition(":")[2].partition("/")[0])
                own = eyas.Endpoint(
                    memory=memory, verify=False, resolve={f"{host}:{port}": "127.0.0.1"}
                )
                with eyas.Client(endpoint=own, http3=False) as one:
                    assert one.get(f"https://{host}:{port}/bytes/1").is_success
                return client.get(url).status_code, endpoint.warnings(), own.warnings()

            assert client.get(url).is_success
            with multiprocessing.get_context("fork").Pool(3) as pool:
                results = pool.map(work, range(9))
            assert results == [(200, [], [])] * 9, results
            assert client.get(url).is_success
            print(eyas.Endpoint(memory=memory).warnings(), endpoint.warnings())
            """,
            f"{server.url}/bytes/1",
            str(server.roots),
            str(tmp_path / "memory.sqlite"),
        )
    )
    assert out == "[] []\n"


INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import eyas
there = interpreters.create()
program = '''
try:
    import eyas
except ImportError as error:
    outcome = str(error)
else:
    outcome = "imported"
import os
os.write(1, outcome.encode())
'''
print("before", flush=True)
if hasattr(interpreters, "exec"):
    failed = interpreters.exec(there, program)
    assert failed is None, failed
else:
    interpreters.run_string(there, program)
"""


def test_subinterpreters_are_rejected() -> None:
    out = output_of(python(INTERPRETERS))
    # From 3.12 on, Python itself rejects the import; the message is still ours.
    assert out.startswith("before\neyas can be used in only one interpreter of a process: "), out
    assert out.endswith("use threads or processes instead of subinterpreters"), out


def test_the_command_is_included() -> None:
    arguments = [sys.executable, "-m", "eyas", "--version"]
    version = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    assert version.startswith("eyas ")
    failed = subprocess.run([*arguments[:3], "no such command"], capture_output=True, check=False)
    assert failed.returncode != 0
