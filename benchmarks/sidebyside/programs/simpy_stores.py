"""SimPy: a process that sends and a process that receives for each user, a store as her letter box."""

import random

import simpy

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, label, perform


def prepare(count, seed):
    draw, world = random.Random(seed), simpy.Environment()
    boxes = [simpy.Store(world) for _ in range(count)]
    got, ones = [0] * count, [0] * count

    def send(user):
        y_hat = label(user) ^ (draw.random() < ALPHA)
        yield boxes[user // CLUSTER * CLUSTER + draw.randrange(CLUSTER)].put(y_hat)

    def receive(user):
        while True:
            ones[user] += yield boxes[user].get()
            got[user] += 1

    for user in range(count):
        world.process(send(user))
        world.process(receive(user))

    def exchange(begin):
        begin()
        world.run()
        return got, ones

    return exchange


if __name__ == "__main__":
    perform(prepare)
