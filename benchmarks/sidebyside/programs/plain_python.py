"""Plain Python objects: what one writes without a framework."""

import random

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, label, perform


class User:
    """A user and what she has received."""

    __slots__ = ("draw", "got", "number", "ones")

    def __init__(self, number, draw):
        self.number, self.draw, self.got, self.ones = number, draw, 0, 0

    def send(self, users):
        y_hat = label(self.number) ^ (self.draw.random() < ALPHA)
        users[self.number // CLUSTER * CLUSTER + self.draw.randrange(CLUSTER)].receive(y_hat)

    def receive(self, y_hat):
        self.got += 1
        self.ones += y_hat


def prepare(count, seed):
    draw = random.Random(seed)
    users = [User(number, draw) for number in range(count)]

    def exchange(begin):
        begin()
        for user in users:
            user.send(users)
        return [user.got for user in users], [user.ones for user in users]

    return exchange


if __name__ == "__main__":
    perform(prepare)
