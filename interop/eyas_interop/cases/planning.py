"""`plan`, `memory`, and `replay`, against Caddy."""

from ..world import World
from .case import about

URL = "https://caddy.eyas.test/"


@about("caddy")
def case_plan(world: World) -> None:
    """The plan has QUIC and TCP on both families, QUIC first, and each entry has its reasons."""
    world.server("caddy")
    ran = world.eyas.run("plan", "--json", "--memory", "none", URL)
    entries = ran.json.get("entries") or []
    candidates = [entry.get("candidate", entry) for entry in entries]
    kinds = {(it.get("transport"), "[" in str(it.get("address"))) for it in candidates}
    wanted = {(transport, six) for transport in ("quic", "tcp") for six in (True, False)}
    good = ran.status == 0 and wanted <= kinds and candidates[0]["transport"] == "quic"
    good = good and all(entry.get("reasons") for entry in entries)
    world.report.check("caddy", "plan", good, str(ran))


@about("caddy")
def case_memory(world: World) -> None:
    """A run is remembered, the next goes by it, and `forget` forgets."""
    world.server("caddy")
    memory = ["--memory", str(world.file("sqlite"))]
    get = ["get", URL, "--json", "--output", str(world.file("page")), *memory, *world.trust]
    first = world.eyas.run(*get)
    listed = world.eyas.run("memory", "list", "--json", *memory, bare=True)
    good = first.status == 0 and listed.status == 0 and "caddy.eyas.test" in listed.said
    world.report.check("caddy", "memory list", good, str(listed))
    second = world.eyas.run(*get)
    good = second.status == 0 and second.json.get("from_memory") is True
    good = good and second.winner.get("transport") == "quic"
    world.report.check("caddy", "the second get goes by the memory", good, second.outline())
    forgot = world.eyas.run("memory", "forget", "caddy.eyas.test", *memory, bare=True)
    listed = world.eyas.run("memory", "list", "--json", *memory, bare=True)
    good = forgot.status == 0 and listed.status == 0 and "caddy.eyas.test" not in listed.said
    world.report.check("caddy", "memory forget", good, f"{forgot}; {listed}")


@about("caddy")
def case_replay(world: World) -> None:
    """A recorded race runs again in the same way; a changed record is noticed."""
    world.server("caddy")
    trace = world.file("jsonl")
    race = world.eyas.run("race", URL, "--memory", "none", "--trace", str(trace), *world.trust)
    again = world.eyas.run("replay", str(trace), bare=True)
    good = race.status == 0 and again.status == 0
    world.report.check("caddy", "replay", good, f"race {race}; replay {again}")
    lines = trace.read_text().splitlines(keepends=True) if trace.exists() else []
    starts = [number for number, line in enumerate(lines) if '"start"' in line]
    if not starts:
        world.report.failed("caddy", "replay of a changed record", f"no start in {len(lines)} lines")
        return
    # Without the line that started the first attempt, the record is no longer what happens.
    del lines[starts[0]]
    trace.write_text("".join(lines))
    changed = world.eyas.run("replay", str(trace), bare=True)
    world.report.check("caddy", "replay of a changed record", changed.status != 0, str(changed))


CASES = [case_plan, case_memory, case_replay]
