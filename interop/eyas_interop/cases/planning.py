"""`plan`, `memory`, and `replay`."""

from ..world import World
from .case import for_each_server


def url(peer: str) -> str:
    """Returns the URL of a server's page."""
    return f"https://{peer}.eyas.test/"


def case_plan(world: World, peer: str) -> None:
    """The plan has QUIC and TCP on both families, QUIC first, and each entry has its reasons."""
    world.server(peer)
    completed = world.eyas.run("plan", "--json", "--memory", "none", url(peer))
    entries = completed.json.get("entries") or []
    candidates = [entry.get("candidate", entry) for entry in entries]
    kinds = {(it.get("transport"), "[" in str(it.get("address"))) for it in candidates}
    expected = {(transport, is_ipv6) for transport in ("quic", "tcp") for is_ipv6 in (True, False)}
    good = completed.status == 0 and expected <= kinds and candidates[0]["transport"] == "quic"
    good = good and all(entry.get("reasons") for entry in entries)
    world.report.check(peer, "plan", good, str(completed))


def case_memory(world: World, peer: str) -> None:
    """A run is remembered, the next one uses the memory, and `forget` removes it."""
    world.server(peer)
    memory = ["--memory", str(world.file("sqlite"))]
    get = ["get", url(peer), "--json", "--output", str(world.file("page")), *memory, *world.trust]
    first = world.eyas.run(*get)
    listed = world.eyas.run("memory", "list", "--json", *memory, bare=True)
    good = first.status == 0 and listed.status == 0 and f"{peer}.eyas.test" in listed.stdout
    world.report.check(peer, "memory list", good, str(listed))
    second = world.eyas.run(*get)
    good = second.status == 0 and second.json.get("from_memory") is True
    good = good and second.winner.get("transport") == "quic"
    world.report.check(peer, "the second get uses the memory", good, second.outline())
    forget = world.eyas.run("memory", "forget", f"{peer}.eyas.test", *memory, bare=True)
    listed = world.eyas.run("memory", "list", "--json", *memory, bare=True)
    good = forget.status == 0 and listed.status == 0 and f"{peer}.eyas.test" not in listed.stdout
    world.report.check(peer, "memory forget", good, f"{forget}; {listed}")


def case_replay(world: World, peer: str) -> None:
    """A recorded race replays identically; a modified recording is detected."""
    world.server(peer)
    trace = world.file("jsonl")
    race = world.eyas.run("race", url(peer), "--memory", "none", "--trace", str(trace), *world.trust)
    replay = world.eyas.run("replay", str(trace), bare=True)
    good = race.status == 0 and replay.status == 0
    world.report.check(peer, "replay", good, f"race {race}; replay {replay}")
    lines = trace.read_text().splitlines(keepends=True) if trace.exists() else []
    starts = [number for number, line in enumerate(lines) if '"start"' in line]
    if not starts:
        world.report.failed(peer, "replay of a modified recording", f"no start in {len(lines)} lines")
        return
    # Without the line that starts the first attempt, the recording no longer matches.
    del lines[starts[0]]
    trace.write_text("".join(lines))
    changed = world.eyas.run("replay", str(trace), bare=True)
    world.report.check(peer, "replay of a modified recording", changed.status != 0, str(changed))


CASES = [*for_each_server(case_plan, case_memory, case_replay)]
