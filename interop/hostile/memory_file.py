"""Files that a slip of the pen, or another user of the same directory, puts where the memory is to be, and
memories that many programs find damaged at once.

What is no memory must stay as it is, to the byte and the mode; of what is set aside nothing may be lost;
and no request may fail because of either.
"""

import os
import pathlib
import sqlite3
import subprocess

from eyas_interop.hostile.stage import Server, Stage, main

# Programs that start at the same moment.
AT_ONCE = 8
# How often a memory is damaged.
ROUNDS = 3
# The longest that one run of the command may take, in seconds.
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
    with sqlite3.connect(memory) as theirs:
        theirs.execute("CREATE TABLE theirs (x)")
        theirs.execute("INSERT INTO theirs VALUES (1)")
    theirs.close()


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
    """A text where SQLite would write its log, and delete it afterwards."""
    memory.with_name(f"{memory.name}-wal").write_text("my notes\n" * 1_000)


def get(stage: Stage, server: Server, memory: pathlib.Path) -> subprocess.Popen:
    words = ["get", server.url("/small"), "--output", "/dev/null", "--memory", str(memory)]
    return subprocess.Popen([str(stage.eyas), *words, *server.trust], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ended(running: subprocess.Popen) -> tuple[int, str]:
    """The status and what was said, of a run that must come to its end by itself."""
    try:
        _, said = running.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        return (-1, f"no end within {LIMIT} s")
    return (running.returncode, said)


def state(home: pathlib.Path) -> dict:
    """Everything there is in a directory, with modes and contents."""
    def one(path: pathlib.Path) -> tuple:
        known = path.lstat()
        contents = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        return (known.st_mode, known.st_ino, contents)
    return {path.name: one(path) for path in home.iterdir()}


def left_alone(stage: Stage, server: Server, home: pathlib.Path, plant) -> None:
    memory = home / "memory"
    plant(memory)
    for path in home.iterdir():
        if not path.is_symlink() and path.is_file():
            path.chmod(0o664)
    before = state(home)
    runs = [ended(get(stage, server, memory)) for _ in range(2)]
    same = state(home) == before
    said = all("is not an eyas memory" in said for _, said in runs)
    fetched = all(status == 0 for status, _ in runs)
    detail = f"untouched: {same}; told: {said}; fetched: {fetched}; {runs[0][1].strip()[-200:]}"
    stage.check(plant.__name__, same and said and fetched, detail)


def set_aside(stage: Stage, server: Server) -> None:
    home = stage.directory / "damaged"
    home.mkdir()
    memory = home / "memory"
    fetched, lost = 0, 0
    damaged = []
    for number in range(ROUNDS):
        ended(get(stage, server, memory))
        # As after a full disk: the header is there and tells whose it is, the rest is not.
        damaged.append(memory.read_bytes()[:512] + bytes([number]))
        memory.write_bytes(damaged[-1])
        for suffix in ("-wal", "-shm"):
            memory.with_name(f"memory{suffix}").unlink(missing_ok=True)
        runs = [ended(running) for running in [get(stage, server, memory) for _ in range(AT_ONCE)]]
        fetched += sum(status == 0 for status, _ in runs)
    # What SQLite keeps beside a file goes with it.
    beside = ("-journal", "-wal", "-shm")
    files = [path for path in home.glob("memory.damaged-*") if not path.name.endswith(beside)]
    aside = [path.read_bytes() for path in files]
    lost = sum(contents not in aside for contents in damaged)
    asked = ROUNDS * AT_ONCE
    stage.check("damaged, fetched", fetched == asked, f"{fetched} of {asked}")
    stage.within("damaged and lost", lost, 0)
    sound = [f"{path.name}: {path.stat().st_size} bytes" for path in files if path.read_bytes() not in damaged]
    stage.check("nothing but what was damaged is set aside", len(aside) == len(damaged), f"{len(aside)}; {sound}")


if __name__ == "__main__":
    main(attack)
