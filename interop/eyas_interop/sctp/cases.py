"""What is checked with each peer, over each carrier, in both directions.

A case takes a meeting and gives whether all was well and what was seen.
"""

import time

from ..report import Skip
from .meeting import Meeting
from .network import ours, theirs
from .peers import result, wait_ready
from .tries import Seen

SIZES = "1,2,3,5,64,1400,1452,1453,16384,65536,262144,1048576"


def good(answer: dict, messages: int, *events: str) -> bool:
    """Whether that many messages came, unharmed and in order, and these events were told of."""
    clean = answer["messages"] == messages and answer["bad"] == 0 and answer["disordered"] == 0
    told = all(any(it.startswith(event) for it in answer["events"]) for event in events)
    return clean and told and "error" not in answer


def shown(connector: dict, listener: dict) -> str:
    """For people."""
    def one(answer: dict) -> str:
        if "error" in answer:
            return answer["error"]
        harm = f", {answer['bad']} bad, {answer['disordered']} out of order"
        harm = harm if answer["bad"] or answer["disordered"] else ""
        return f"{answer['messages']} messages{harm}, {', '.join(answer['events'][:12])}"

    return f"connector: {one(connector)}; listener: {one(listener)}"


def sizes(meeting: Meeting, six: bool = False) -> Seen:
    """Messages of 1 B to 1 MiB, both ways; the connector shuts down."""
    steps = [f"send:24:{SIZES}:3", "receive:24"]
    a, b = meeting.run([*steps, "shutdown"], [*steps, "wait"], capture=True, six=six)
    return good(a, 24) and good(b, 24), shown(a, b)


def sizes_over_ipv6(meeting: Meeting) -> Seen:
    """The same over IPv6."""
    return sizes(meeting, six=True)


def bulk(meeting: Meeting) -> Seen:
    """Much, both ways at once."""
    count = 60 if meeting.peer.name == "pion" else 200
    steps = [f"send:{count}:65536:4", f"receive:{count}", "dry"]
    a, b = meeting.run([*steps, "shutdown"], [*steps, "wait"])
    return good(a, count) and good(b, count), shown(a, b)


def many_streams(meeting: Meeting) -> Seen:
    """100,000 messages on 1,000 streams."""
    # The guest takes some ten seconds for them in each direction, and more on a busy machine.
    count = 100_000
    a, b = meeting.run(
        [f"send:{count}:64:1000", "dry", "shutdown"], ["wait"], options=("--streams", "1000"), within=240
    )
    return good(a, 0) and good(b, count), shown(a, b)


def echo(meeting: Meeting) -> Seen:
    """Everything comes back on its stream."""
    a, b = meeting.run(
        ["send:500:10,1000,3000:5", "receive:500", "shutdown"], ["wait"],
        listener_options=("--echo",),
    )
    return good(a, 500) and good(b, 500), shown(a, b)


def unordered(meeting: Meeting) -> Seen:
    """Messages that may overtake others."""
    a, b = meeting.run(["send:500:10,1000,3000:5:unordered", "dry", "shutdown"], ["wait"])
    return good(b, 500), shown(a, b)


def listener_shuts_down(meeting: Meeting) -> Seen:
    """The side that was connected to ends the association."""
    a, b = meeting.run(["send:10:1000:1", "wait"], ["receive:10", "shutdown"])
    return good(a, 0, "up") and good(b, 10), shown(a, b)


def connector_aborts(meeting: Meeting) -> Seen:
    """An abort arrives as one."""
    a, b = meeting.run(["send:10:1000:1", "dry", "abort"], ["wait"])
    return good(b, 10) and lost(b), shown(a, b)


def listener_aborts(meeting: Meeting) -> Seen:
    """The same from the other side."""
    a, b = meeting.run(["send:10:1000:1", "dry", "wait"], ["receive:10", "abort"])
    return good(b, 10) and lost(a), shown(a, b)


def lost(answer: dict) -> bool:
    """Whether it was told that the association broke."""
    ways = ("lost", "Connection reset", "ended", "end")
    return any(event.startswith(ways) for event in answer["events"])


def restart(meeting: Meeting) -> Seen:
    """The connector vanishes without a word and comes back from the same port."""
    network = meeting.network
    listener = meeting.side(not meeting.we_connect, ["receive:20", "wait"])
    first = second = None
    try:
        wait_ready(listener)
        first = meeting.side(meeting.we_connect, ["send:10:1000:1", "dry", "sleep:30000"])
        time.sleep(1)
        network.cut(meeting.peer.links[0])
        first.kill()
        network.heal()
        second = meeting.side(meeting.we_connect, ["send:10:1000:1", "dry", "shutdown"])
        a, b = result(second, 60), result(listener, 60)
    finally:
        for one in (first, second, listener):
            if one is not None:
                one.kill()
    return good(b, 20, "restart"), shown(a, b)


def path_cut(meeting: Meeting) -> Seen:
    """One of two paths is cut, and restored."""
    network, link = meeting.network, meeting.peer.links[0]

    def cut_and_heal() -> None:
        time.sleep(0.8)
        network.cut(link)
        time.sleep(2.5)
        network.heal()

    steps = ["send:50:1000:1", "dry", "sleep:1200", "send:50:1000:1", "dry", "sleep:6000", "send:50:1000:1",
             "dry", "shutdown"]
    a, b = meeting.run(steps, ["wait"], paths=2, meanwhile=cut_and_heal)
    broke = any(event in ("path unreachable", "path potentially failed") for event in a["events"])
    return good(b, 150) and broke and "path available" in a["events"], shown(a, b)


def add_address(meeting: Meeting) -> Seen:
    """The connector adds an address, takes the first one back, and goes on.

    Inside UDP usrsctp sends from the address that the route has, be it one of the association or
    not (its socket of UDP is bound to none). So as the listener it names both of its addresses, or
    its answers to the new address would come from a stranger; and as the connector it takes the
    second address back, for it goes on to send from the first and takes in nothing there.
    """
    here = ours if meeting.we_connect else theirs
    first, second = (here(link) for link in meeting.peer.links)
    by_route = meeting.peer.name == "usrsctp" and meeting.carrier == "udp"
    gone = second if by_route and not meeting.we_connect else first
    steps = ["send:20:1000:1", "dry", f"add:{second}", "sleep:700", "send:20:1000:1", "dry",
             f"remove:{gone}", "sleep:700", "send:20:1000:1", "dry", "shutdown"]
    a, b = meeting.run(steps, ["wait"], our_options=("--asconf",), capture=True, listener_paths=2 if by_route else None)
    return good(b, 60, "path added", "path removed"), shown(a, b)


def reset(meeting: Meeting) -> Seen:
    """Streams start anew, of either side."""
    steps = ["send:40:100:4", "dry", "sleep:200", "reset:1,2", "sleep:300", "send:40:100:4", "dry"]
    a, b = meeting.run([*steps, "receive:80", "sleep:300", "shutdown"], [*steps, "wait"], capture=True)
    events = () if meeting.peer.name == "pion" else ("reset incoming done",)
    mine, other = (a, b) if meeting.we_connect else (b, a)
    fine = good(mine, 80, "reset incoming done", "reset outgoing done") and good(other, 80, *events)
    return fine, shown(a, b)


def partial_reliability(meeting: Meeting) -> Seen:
    """Messages are given up on a link with losses, and the association goes on."""
    meeting.network.lose(meeting.peer.links[0], 8)
    a, b = meeting.run(
        ["send:150:1000:4:retransmit=0", "dry", "send:20:1000:4", "dry", "shutdown"], ["wait"],
        capture=True,
    )
    came = b["messages"]
    clean = b.get("bad") == 0 and b["disordered"] == 0 and "error" not in b
    return clean and 20 < came < 170, shown(a, b)


def losses(meeting: Meeting) -> Seen:
    """All arrives on a link with losses."""
    meeting.network.lose(meeting.peer.links[0], 20)
    a, b = meeting.run(["send:400:3000:4", "dry", "shutdown"], ["wait"])
    return good(b, 400), shown(a, b)


def interleaving(meeting: Meeting) -> Seen:
    """I-DATA: large messages on several streams at once, both ways.

    Linux numbers the second fragment of a message 0 and the third 1 (net/sctp/stream_interleave.c, in
    every version so far, and so it wants it from others), where RFC 8260 §2.1 counts on from the
    first, which is 0 already. Ours knows it by an offer of I-DATA without I-FORWARD-TSN and does with
    DATA there, which takes an INIT more where ours connects; messages of one fragment would pass
    either way.
    """
    size = 1300 if meeting.peer.name == "linux" else 200_000
    steps = [f"send:60:100,{size}:6", "receive:60", "dry"]
    a, b = meeting.run(
        [*steps, "shutdown"], [*steps, "wait"], options=("--interleave",), capture=True
    )
    return good(a, 60) and good(b, 60), shown(a, b)


def zero_checksum(meeting: Meeting) -> Seen:
    """Packets without a checksum (RFC 9653)."""
    a, b = meeting.run(
        ["send:200:10,3000:5", "receive:200", "shutdown"], ["wait"],
        options=("--zero-checksum",), listener_options=("--echo",),
    )
    return good(a, 200) and good(b, 200), shown(a, b)


# Which case needs what: all peers, those with the whole of SCTP, pion alone.
def multipath(meeting: Meeting) -> Seen:
    """Both send on both paths at once (CMT-SCTP)."""
    if meeting.peer.name != "usrsctp":
        raise Skip(f"{meeting.peer.name} sends on one path at a time")
    # Paths are verified first.
    steps = ["sleep:2500", "send:400:16384:4", "receive:400", "dry"]
    before = meeting.network.carried(meeting.peer.links)
    a, b = meeting.run([*steps, "shutdown"], [*steps, "wait"], options=("--multipath",), paths=2)
    after = meeting.network.carried(meeting.peer.links)
    sent, received = (
        [late - early for early, late in zip(one, other)] for one, other in zip(before, after)
    )
    # Each path carries a part that heartbeats and acknowledgements do not explain.
    used = all(part > sum(one) / 10 for one in (sent, received) for part in one)
    told = "; ".join(
        f"{who} sent {' + '.join(f'{part / 1e6:.1f}' for part in one)} MB"
        for who, one in (("we", sent), ("they", received))
    )
    return good(a, 400) and good(b, 400) and used, f"{told}; {shown(a, b)}"


EVERYWHERE = [
    sizes, bulk, many_streams, echo, unordered, listener_shuts_down, connector_aborts,
    listener_aborts, reset, partial_reliability, losses, interleaving,
]
WHOLE = [sizes_over_ipv6, restart, path_cut, add_address, multipath]
PION = [zero_checksum]
