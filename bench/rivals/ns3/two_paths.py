"""Measures the cost of a simulated second in ns-3: two disjoint paths of 10 Mbit/s, with a TCP connection over each.

    two_paths.py SECONDS

The sender has a link of 1 Gbit/s to the first router of each path, and the receiver to the last. The link between the
routers has 10 Mbit/s, 10 ms and a queue of 100 packets, as in `cargo eyas-bench sim`. The output is one line of JSON.
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


def add_route(node, destination, next_hop, interface):
    """Adds a static route: with shortest-path routing, both connections would use the same path."""
    ipv4 = node.GetObject[ns.Ipv4]()
    ns.Ipv4StaticRoutingHelper().GetStaticRouting(ipv4).AddHostRouteTo(destination, next_hop, interface)


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
    destinations = []
    addresses = ns.Ipv4AddressHelper()
    for path in range(PATHS):
        first, last = routers.Get(2 * path), routers.Get(2 * path + 1)
        hops = [
            (access, hosts.Get(0), first),
            (bottleneck, first, last),
            (access, last, hosts.Get(1)),
        ]
        links = []
        for number, (helper, near, far) in enumerate(hops):
            devices = helper.Install(near, far)
            addresses.SetBase(f"10.{path}.{number}.0", "255.255.255.0")
            interfaces = addresses.Assign(devices)
            links.append((interfaces.GetAddress(0), interfaces.GetAddress(1)))
            # Packets are queued only in the queues above.
            ns.TrafficControlHelper().Uninstall(devices)
        source, destination = links[0][0], links[2][1]
        add_route(hosts.Get(0), destination, links[0][1], 1 + path)
        add_route(first, destination, links[1][1], 2)
        add_route(hosts.Get(1), source, links[2][0], 1 + path)
        add_route(last, source, links[1][0], 1)
        destinations.append(destination)
    sinks = ns.ApplicationContainer()
    for path, destination in enumerate(destinations):
        address = ns.InetSocketAddress(destination, PORT + path).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", address)
        sinks.Add(sink.Install(hosts.Get(1)))
        sender = ns.BulkSendHelper("ns3::TcpSocketFactory", address)
        sender.SetAttribute("SendSize", ns.UintegerValue(PAYLOAD))
        sender.Install(hosts.Get(0)).Start(ns.Seconds(1.0))
    ns.Simulator.Stop(ns.Seconds(seconds))
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    ns.Simulator.Run()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    received = sum(sinks.Get(path).GetTotalRx() for path in range(PATHS))
    output = {
        "simulated": seconds,
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "events": ns.Simulator.GetEventCount(),
        "bytes": received,
    }
    ns.Simulator.Destroy()
    print(json.dumps(output))


if __name__ == "__main__":
    main()
