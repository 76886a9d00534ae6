"""Other files at the path of the memory, from a typo or another user of the same directory, and damaged
memories that many programs open at once.

A file that is not a memory must keep its bytes and its mode; no damaged memory that is set aside may be
lost; and no request may fail because of either.
"""

import os
import pathlib
import sqlite3
import subprocess

from eyas_interop.hostile.stage import Server, Stage, main

# Programs that start at the same moment.
CONCURRENT_PROGRAMS = 8
# How many times a memory is damaged.
ROUNDS = 3
# The time limit of one run of the command, in seconds.
LIMIT = 40


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(small=1_000))
    for number, plant in enumerate((text, database, link, dangling, directory, pipe, log)):
        home = stage.directory / f"planted-{number}"
        home.mkdir()
        left_alone(stage, server, home, plant)
    set_aside(stage, server)


def text(memory: pathlib.Path) -> None:
    memory.write_text("my notes\n" * 1_000)


def database(memory: pathlib.Path) -> None:
    with sqlite3.connect(memory) as other:
        other.execute("CREATE TABLE other (x)")
        other.execute("INSERT INTO other VALUES (1)")
    other.close()


def link(memory: pathlib.Path) -> None:
    target = memory.with_name("target")
    target.write_text("a text that others may read")
    memory.symlink_to(target)


def dangling(memory: pathlib.Path) -> None:
    memory.symlink_to("nowhere")


def directory(memory: pathlib.Path) -> None:
    memory.mkdir()


def pipe(memory: pathlib.Path) -> None:
    os.mkfifo(memory)


def log(memory: pathlib.Path) -> None:
    """A text at the path of SQLite's log, which SQLite would overwrite and delete."""
    memory.with_name(f"{memory.name}-wal").write_text("my notes\n" * 1_000)


def get(stage: Stage, server: Server, memory: pathlib.Path) -> subprocess.Popen:
    arguments = ["get", server.url("/small"), "--output", "/dev/null", "--memory", str(memory)]
    return subprocess.Popen([str(stage.eyas), *arguments, *server.trust], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(running: subprocess.Popen) -> tuple[int, str]:
    """Returns the status and the standard error of a run that must end by itself."""
    try:
        _, stderr = running.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        return (-1, f"no end within {LIMIT} s")
    return (running.returncode, stderr)


def state(home: pathlib.Path) -> dict:
    """Returns the files of a directory, with modes, inodes and contents."""
    def describe(path: pathlib.Path) -> tuple:
        status = path.lstat()
        contents = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        return (status.st_mode, status.st_ino, contents)
    return {path.name: describe(path) for path in home.iterdir()}


def left_alone(stage: Stage, server: Server, home: pathlib.Path, plant) -> None:
    memory = home / "memory"
    plant(memory)
    for path in home.iterdir():
        if not path.is_symlink() and path.is_file():
            path.chmod(0o664)
    before = state(home)
    runs = [finish(get(stage, server, memory)) for _ in range(2)]
    same = state(home) == before
    reported = all("is not an eyas memory" in stderr for _, stderr in runs)
    fetched = all(status == 0 for status, _ in runs)
    detail = f"unchanged: {same}; reported: {reported}; fetched: {fetched}; {runs[0][1].strip()[-200:]}"
    stage.check(plant.__name__, same and reported and fetched, detail)


def set_aside(stage: Stage, server: Server) -> None:
    home = stage.directory / "damaged"
    home.mkdir()
    memory = home / "memory"
    fetched, lost = 0, 0
    damaged = []
    for number in range(ROUNDS):
        finish(get(stage, server, memory))
        # As after a full disk: only the header is left, which identifies the file as a memory.
        damaged.append(memory.read_bytes()[:512] + bytes([number]))
        memory.write_bytes(damaged[-1])
        for suffix in ("-wal", "-shm"):
            memory.with_name(f"memory{suffix}").unlink(missing_ok=True)
        runs = [finish(running) for running in [get(stage, server, memory) for _ in range(CONCURRENT_PROGRAMS)]]
        fetched += sum(status == 0 for status, _ in runs)
    # SQLite's auxiliary files are set aside with the memory.
    auxiliary = ("-journal", "-wal", "-shm")
    files = [path for path in home.glob("memory.damaged-*") if not path.name.endswith(auxiliary)]
    contents_aside = [path.read_bytes() for path in files]
    lost = sum(contents not in contents_aside for contents in damaged)
    requests = ROUNDS * CONCURRENT_PROGRAMS
    stage.check("damaged, fetched", fetched == requests, f"{fetched} of {requests}")
    stage.within("damaged and lost", lost, 0)
    undamaged = [f"{path.name}: {path.stat().st_size} bytes" for path in files if path.read_bytes() not in damaged]
    stage.check("only damaged memories are set aside", len(contents_aside) == len(damaged), f"{len(contents_aside)}; {undamaged}")


if __name__ == "__main__":
    main(attack)
