"""SimGrid: an actor a user on one host a cluster, a mailbox a user."""

import random
import sys

import simgrid

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, label, perform


def prepare(count, seed):
    draw = random.Random(seed)
    engine = simgrid.Engine([sys.argv[0], "--log=root.threshold:error"])
    zone = simgrid.NetZone.create_full_zone("zone")
    hosts = [zone.create_host(f"host {cluster}", 1e9) for cluster in range(count // CLUSTER)]
    for host in hosts:
        wire = zone.create_link(f"wire of {host.name}", 1e9)
        zone.add_route(host.netpoint, host.netpoint, None, None, [simgrid.LinkInRoute(wire)], True)
    zone.seal()
    y_hat = [label(user) ^ (draw.random() < ALPHA) for user in range(count)]
    peers = [user // CLUSTER * CLUSTER + draw.randrange(CLUSTER) for user in range(count)]
    due = [0] * count  # an actor must know when to stop waiting
    for peer in peers:
        due[peer] += 1
    got, ones = [0] * count, [0] * count

    def user(number):
        sent = simgrid.Mailbox.by_name(str(peers[number])).put_async(int(y_hat[number]), 1)
        box = simgrid.Mailbox.by_name(str(number))
        for _ in range(due[number]):
            ones[number] += box.get()
            got[number] += 1
        sent.wait()

    for number in range(count):
        simgrid.Actor.create(f"user {number}", hosts[number // CLUSTER], user, number)

    def exchange(begin):
        begin()
        engine.run()
        return got, ones

    return exchange


if __name__ == "__main__":
    perform(prepare)
