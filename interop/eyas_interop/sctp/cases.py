"""The SCTP cases, for each peer, over each carrier, in both directions.

A case takes an exchange and returns whether it passed, and details.
"""

import time

from ..report import Skip
from .exchange import Exchange
from .network import ours, theirs
from .peers import result, wait_ready
from .retry import Result

# The type of the chunk.
SHUTDOWN_COMPLETE = 14
SIZES = "1,2,3,5,64,1400,1452,1453,16384,65536,262144,1048576"


def good(report: dict, messages: int, *events: str) -> bool:
    """Returns whether that many messages arrived intact and in order, and these events were reported."""
    clean = report["messages"] == messages and report["bad"] == 0 and report["disordered"] == 0
    reported = all(any(it.startswith(event) for it in report["events"]) for event in events)
    return clean and reported and "error" not in report


def describe(connector: dict, listener: dict) -> str:
    """Returns a description of both reports."""
    def side(report: dict) -> str:
        if "error" in report:
            return report["error"]
        damage = f", {report['bad']} bad, {report['disordered']} out of order"
        damage = damage if report["bad"] or report["disordered"] else ""
        return f"{report['messages']} messages{damage}, {', '.join(report['events'][:12])}"

    return f"connector: {side(connector)}; listener: {side(listener)}"


def sizes(exchange: Exchange, ipv6: bool = False) -> Result:
    """Messages of 1 B to 1 MiB, both ways; the connector shuts down."""
    steps = [f"send:24:{SIZES}:3", "receive:24"]
    a, b = exchange.run([*steps, "shutdown"], [*steps, "wait"], capture=True, ipv6=ipv6)
    return good(a, 24) and good(b, 24), describe(a, b)


def sizes_over_ipv6(exchange: Exchange) -> Result:
    """The same over IPv6."""
    return sizes(exchange, ipv6=True)


def bulk(exchange: Exchange) -> Result:
    """A large amount, both ways simultaneously."""
    count = 60 if exchange.peer.name == "pion" else 200
    steps = [f"send:{count}:65536:4", f"receive:{count}", "dry"]
    a, b = exchange.run([*steps, "shutdown"], [*steps, "wait"])
    return good(a, count) and good(b, count), describe(a, b)


def many_streams(exchange: Exchange) -> Result:
    """100,000 messages on 1,000 streams."""
    # The guest takes about ten seconds for them in each direction, and more on a busy machine.
    count = 100_000
    a, b = exchange.run(
        [f"send:{count}:64:1000", "dry", "shutdown"], ["wait"], options=("--streams", "1000"), within=240
    )
    return good(a, 0) and good(b, count), describe(a, b)


def echo(exchange: Exchange) -> Result:
    """Every message is echoed on its stream."""
    a, b = exchange.run(
        ["send:500:10,1000,3000:5", "receive:500", "shutdown"], ["wait"],
        listener_options=("--echo",),
    )
    return good(a, 500) and good(b, 500), describe(a, b)


def unordered(exchange: Exchange) -> Result:
    """Unordered messages."""
    a, b = exchange.run(["send:500:10,1000,3000:5:unordered", "dry", "shutdown"], ["wait"])
    return good(b, 500), describe(a, b)


def listener_shuts_down(exchange: Exchange) -> Result:
    """The listener shuts the association down."""
    a, b = exchange.run(["send:10:1000:1", "wait"], ["receive:10", "shutdown"])
    return good(a, 0, "up") and good(b, 10), describe(a, b)


def connector_aborts(exchange: Exchange) -> Result:
    """The listener sees the connector's abort."""
    a, b = exchange.run(["send:10:1000:1", "dry", "abort"], ["wait"])
    return good(b, 10) and lost(b), describe(a, b)


def listener_aborts(exchange: Exchange) -> Result:
    """The connector sees the listener's abort."""
    a, b = exchange.run(["send:10:1000:1", "dry", "wait"], ["receive:10", "abort"])
    return good(b, 10) and lost(a), describe(a, b)


def lost(report: dict) -> bool:
    """Returns whether a side reported the loss of the association."""
    endings = ("lost", "Connection reset", "ended", "end")
    return any(event.startswith(endings) for event in report["events"])


def restart(exchange: Exchange) -> Result:
    """The connector vanishes silently and reconnects from the same port."""
    network = exchange.network
    listener = exchange.side(not exchange.we_connect, ["receive:20", "wait"])
    first = second = None
    try:
        wait_ready(listener)
        first = exchange.side(exchange.we_connect, ["send:10:1000:1", "dry", "sleep:30000"])
        time.sleep(1)
        network.cut(exchange.peer.links[0])
        first.kill()
        network.heal()
        second = exchange.side(exchange.we_connect, ["send:10:1000:1", "dry", "shutdown"])
        a, b = result(second, 60), result(listener, 60)
    finally:
        for side in (first, second, listener):
            if side is not None:
                side.kill()
    return good(b, 20, "restart"), describe(a, b)


def path_cut(exchange: Exchange) -> Result:
    """One of two paths is cut, and restored."""
    network, link = exchange.network, exchange.peer.links[0]

    def cut_and_heal() -> None:
        time.sleep(0.8)
        network.cut(link)
        time.sleep(2.5)
        network.heal()

    steps = ["send:50:1000:1", "dry", "sleep:1200", "send:50:1000:1", "dry", "sleep:6000", "send:50:1000:1",
             "dry", "shutdown"]
    a, b = exchange.run(steps, ["wait"], paths=2, meanwhile=cut_and_heal)
    broke = any(event in ("path unreachable", "path potentially failed") for event in a["events"])
    return good(b, 150) and broke and "path available" in a["events"], describe(a, b)


def add_address(exchange: Exchange) -> Result:
    """The connector adds an address, removes the first one, and continues.

    Over UDP usrsctp sends from the source address of the route, whether or not it belongs to the
    association (its UDP socket is not bound to an address). So as the listener it announces both of its
    addresses, or its answers to the new address would come from an unknown one; and as the connector it
    removes the second address, because it keeps sending from the first but would not receive there.
    """
    local = ours if exchange.we_connect else theirs
    first, second = (local(link) for link in exchange.peer.links)
    by_route = exchange.peer.name == "usrsctp" and exchange.carrier == "udp"
    removed = second if by_route and not exchange.we_connect else first
    steps = ["send:20:1000:1", "dry", f"add:{second}", "sleep:700", "send:20:1000:1", "dry",
             f"remove:{removed}", "sleep:700", "send:20:1000:1", "dry", "shutdown"]
    a, b = exchange.run(steps, ["wait"], our_options=("--asconf",), capture=True, listener_paths=2 if by_route else None)
    return good(b, 60, "path added", "path removed"), describe(a, b)


def reset(exchange: Exchange) -> Result:
    """Each side's streams are reset."""
    steps = ["send:40:100:4", "dry", "sleep:200", "reset:1,2", "sleep:300", "send:40:100:4", "dry"]
    a, b = exchange.run([*steps, "receive:80", "sleep:300", "shutdown"], [*steps, "wait"], capture=True)
    events = () if exchange.peer.name == "pion" else ("reset incoming done",)
    ours, other = (a, b) if exchange.we_connect else (b, a)
    passed = good(ours, 80, "reset incoming done", "reset outgoing done") and good(other, 80, *events)
    return passed, describe(a, b)


def partial_reliability(exchange: Exchange) -> Result:
    """Messages are abandoned on a lossy link, and the association continues."""
    exchange.network.lose(exchange.peer.links[0], 8)
    a, b = exchange.run(
        ["send:150:1000:4:retransmit=0", "dry", "send:20:1000:4", "dry", "shutdown"], ["wait"],
        capture=True,
    )
    arrived = b["messages"]
    clean = b.get("bad") == 0 and b["disordered"] == 0 and "error" not in b
    return clean and 20 < arrived < 170, describe(a, b)


def lost_shutdown_complete(exchange: Exchange) -> Result:
    """SHUTDOWN COMPLETE is lost: the connector, which has forgotten the association, answers the next SHUTDOWN ACK.

    RFC 9260 §8.4, rule 5.
    """
    if exchange.peer.name == "pion" and not exchange.we_connect:
        raise Skip("pion answers nothing once its association has ended")
    network = exchange.network
    network.lose_first_chunk(exchange.peer.links[0], SHUTDOWN_COMPLETE)
    a, b = exchange.run(
        ["send:10:1000:1", "dry", "shutdown"], ["wait"], once_connector_reported=network.heal
    )
    ends = ["ended" if exchange.peer.name == "pion" else "closed"]
    if exchange.peer.name == "linux" and exchange.we_connect:
        # Linux ends the stream when it receives SHUTDOWN, and its program may see that first.
        ends.append("end")
    return good(a, 0, "closed") and any(good(b, 10, end) for end in ends), describe(a, b)


def losses(exchange: Exchange) -> Result:
    """Everything arrives over a lossy link."""
    exchange.network.lose(exchange.peer.links[0], 20)
    a, b = exchange.run(["send:400:3000:4", "dry", "shutdown"], ["wait"])
    return good(b, 400), describe(a, b)


def interleaving(exchange: Exchange) -> Result:
    """I-DATA: large messages on several streams simultaneously, both ways.

    Linux numbers the second fragment of a message 0 and the third 1 (net/sctp/stream_interleave.c, in
    every version so far, and it expects the same from its peer), where RFC 8260 §2.1 numbers the first
    fragment 0. Our stack recognizes Linux by its offer of I-DATA without I-FORWARD-TSN and then uses
    DATA, which takes another INIT where we connect; messages of one fragment would pass either way.
    """
    size = 1300 if exchange.peer.name == "linux" else 200_000
    steps = [f"send:60:100,{size}:6", "receive:60", "dry"]
    a, b = exchange.run(
        [*steps, "shutdown"], [*steps, "wait"], options=("--interleave",), capture=True
    )
    return good(a, 60) and good(b, 60), describe(a, b)


def zero_checksum(exchange: Exchange) -> Result:
    """Packets without a checksum (RFC 9653)."""
    a, b = exchange.run(
        ["send:200:10,3000:5", "receive:200", "shutdown"], ["wait"],
        options=("--zero-checksum",), listener_options=("--echo",),
    )
    return good(a, 200) and good(b, 200), describe(a, b)


def multipath(exchange: Exchange) -> Result:
    """Both sides send on both paths simultaneously (CMT-SCTP)."""
    if exchange.peer.name != "usrsctp":
        raise Skip(f"{exchange.peer.name} sends on one path at a time")
    # Paths are confirmed first.
    steps = ["sleep:2500", "send:400:16384:4", "receive:400", "dry"]
    before = exchange.network.carried(exchange.peer.links)
    a, b = exchange.run([*steps, "shutdown"], [*steps, "wait"], options=("--multipath",), paths=2)
    after = exchange.network.carried(exchange.peer.links)
    sent, received = (
        [late - early for early, late in zip(old, new)] for old, new in zip(before, after)
    )
    # Each path carries more than heartbeats and acknowledgements.
    used = all(part > sum(parts) / 10 for parts in (sent, received) for part in parts)
    detail = "; ".join(
        f"{who} sent {' + '.join(f'{part / 1e6:.1f}' for part in parts)} MB"
        for who, parts in (("we", sent), ("they", received))
    )
    return good(a, 400) and good(b, 400) and used, f"{detail}; {describe(a, b)}"


# For every peer, for peers with full SCTP, and for pion only.
ALL_PEERS = [
    sizes, bulk, many_streams, echo, unordered, listener_shuts_down, connector_aborts,
    listener_aborts, lost_shutdown_complete, reset, partial_reliability, losses, interleaving,
]
FULL_SCTP = [sizes_over_ipv6, restart, path_cut, add_address, multipath]
PION_ONLY = [zero_checksum]
