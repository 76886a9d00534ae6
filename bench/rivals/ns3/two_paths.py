"""Two disjoint paths of 10 Mbit/s in ns-3, one TCP connection over each: what a simulated second costs.

    two_paths.py SECONDS

Sender and receiver have one link of 1 Gbit/s to the first and the last router of each path; between
the routers there are 10 Mbit/s, 10 ms and a queue of 100 packets, as in `cargo xtask bench sim`. The
answer is one line of JSON.
"""

import json
import resource
import sys
import time

from ns import ns

PATHS = 2
PAYLOAD = 1448
PORT = 9000


def link(rate, delay, packets):
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
    helper.SetChannelAttribute("Delay", ns.StringValue(delay))
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(f"{packets}p"))
    return helper


def route(node, to, by, interface):
    """Each path has routes of its own: the shortest one alone would carry both connections."""
    ipv4 = node.GetObject[ns.Ipv4]()
    ns.Ipv4StaticRoutingHelper().GetStaticRouting(ipv4).AddHostRouteTo(to, by, interface)


def main():
    seconds = float(sys.argv[1])
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpNewReno"))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(PAYLOAD))
    for buffer in ("SndBufSize", "RcvBufSize"):
        ns.Config.SetDefault(f"ns3::TcpSocket::{buffer}", ns.UintegerValue(256 << 10))
    access = link("1Gbps", "0ms", 1000)
    bottleneck = link("10Mbps", "10ms", 100)
    hosts = ns.NodeContainer()
    hosts.Create(2)
    routers = ns.NodeContainer()
    routers.Create(2 * PATHS)
    stack = ns.InternetStackHelper()
    stack.Install(hosts)
    stack.Install(routers)
    ends = []
    addresses = ns.Ipv4AddressHelper()
    for path in range(PATHS):
        first, last = routers.Get(2 * path), routers.Get(2 * path + 1)
        hops = [
            (access, hosts.Get(0), first),
            (bottleneck, first, last),
            (access, last, hosts.Get(1)),
        ]
        there = []
        for number, (helper, near, far) in enumerate(hops):
            devices = helper.Install(near, far)
            addresses.SetBase(f"10.{path}.{number}.0", "255.255.255.0")
            interfaces = addresses.Assign(devices)
            there.append((interfaces.GetAddress(0), interfaces.GetAddress(1)))
            # Nothing waits but in the queues above.
            ns.TrafficControlHelper().Uninstall(devices)
        start, end = there[0][0], there[2][1]
        route(hosts.Get(0), end, there[0][1], 1 + path)
        route(first, end, there[1][1], 2)
        route(hosts.Get(1), start, there[2][0], 1 + path)
        route(last, start, there[1][0], 1)
        ends.append(end)
    sinks = ns.ApplicationContainer()
    for path, end in enumerate(ends):
        address = ns.InetSocketAddress(end, PORT + path).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", address)
        sinks.Add(sink.Install(hosts.Get(1)))
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", address)
        source.SetAttribute("SendSize", ns.UintegerValue(PAYLOAD))
        source.Install(hosts.Get(0)).Start(ns.Seconds(1.0))
    ns.Simulator.Stop(ns.Seconds(seconds))
    begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    ns.Simulator.Run()
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    received = sum(sinks.Get(path).GetTotalRx() for path in range(PATHS))
    answer = {
        "simulated": seconds,
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
        "events": ns.Simulator.GetEventCount(),
        "bytes": received,
    }
    ns.Simulator.Destroy()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
