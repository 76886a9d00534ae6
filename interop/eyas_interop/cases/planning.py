"""`plan`, `memory`, and `replay`."""

from ..world import World
from .case import for_each_server


def url(peer: str) -> str:
    """The page of a server."""
    return f"https://{peer}.eyas.test/"


def case_plan(world: World, peer: str) -> None:
    """The plan has QUIC and TCP on both families, QUIC first, and each entry has its reasons."""
    world.server(peer)
    ran = world.eyas.run("plan", "--json", "--memory", "none", url(peer))
    entries = ran.json.get("entries") or []
    candidates = [entry.get("candidate", entry) for entry in entries]
    kinds = {(it.get("transport"), "[" in str(it.get("address"))) for it in candidates}
    wanted = {(transport, six) for transport in ("quic", "tcp") for six in (True, False)}
    good = ran.status == 0 and wanted <= kinds and candidates[0]["transport"] == "quic"
    good = good and all(entry.get("reasons") for entry in entries)
    world.report.check(peer, "plan", good, str(ran))


def case_memory(world: World, peer: str) -> None:
    """A run is remembered, the next goes by it, and `forget` forgets."""
    world.server(peer)
    memory = ["--memory", str(world.file("sqlite"))]
    get = ["get", url(peer), "--json", "--output", str(world.file("page")), *memory, *world.trust]
    first = world.eyas.run(*get)
    listed = world.eyas.run("memory", "list", "--json", *memory, bare=True)
    good = first.status == 0 and listed.status == 0 and f"{peer}.eyas.test" in listed.said
    world.report.check(peer, "memory list", good, str(listed))
    second = world.eyas.run(*get)
    good = second.status == 0 and second.json.get("from_memory") is True
    good = good and second.winner.get("transport") == "quic"
    world.report.check(peer, "the second get goes by the memory", good, second.outline())
    forgot = world.eyas.run("memory", "forget", f"{peer}.eyas.test", *memory, bare=True)
    listed = world.eyas.run("memory", "list", "--json", *memory, bare=True)
    good = forgot.status == 0 and listed.status == 0 and f"{peer}.eyas.test" not in listed.said
    world.report.check(peer, "memory forget", good, f"{forgot}; {listed}")


def case_replay(world: World, peer: str) -> None:
    """A recorded race runs again in the same way; a changed record is noticed."""
    world.server(peer)
    trace = world.file("jsonl")
    race = world.eyas.run("race", url(peer), "--memory", "none", "--trace", str(trace), *world.trust)
    again = world.eyas.run("replay", str(trace), bare=True)
    good = race.status == 0 and again.status == 0
    world.report.check(peer, "replay", good, f"race {race}; replay {again}")
    lines = trace.read_text().splitlines(keepends=True) if trace.exists() else []
    starts = [number for number, line in enumerate(lines) if '"start"' in line]
    if not starts:
        world.report.failed(peer, "replay of a changed record", f"no start in {len(lines)} lines")
        return
    # Without the line that started the first attempt, the record is no longer what happens.
    del lines[starts[0]]
    trace.write_text("".join(lines))
    changed = world.eyas.run("replay", str(trace), bare=True)
    world.report.check(peer, "replay of a changed record", changed.status != 0, str(changed))


CASES = [*for_each_server(case_plan, case_memory, case_replay)]
