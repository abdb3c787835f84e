"""Mesa: an agent a user, who puts her noisy label into a peer's list."""

import mesa

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, label, perform


class User(mesa.Agent):
    """A user and what she has received."""

    def __init__(self, model, number):
        super().__init__(model)
        self.number, self.inbox = number, []

    def send(self):
        draw = self.model.random
        y_hat = label(self.number) ^ (draw.random() < ALPHA)
        peer = self.number // CLUSTER * CLUSTER + draw.randrange(CLUSTER)
        self.model.users[peer].inbox.append(y_hat)


class Exchange(mesa.Model):
    """All users."""

    def __init__(self, count, seed):
        super().__init__(seed=seed)
        self.users = [User(self, number) for number in range(count)]

    def step(self):
        self.agents.do("send")


def prepare(count, seed):
    model = Exchange(count, seed)

    def exchange(begin):
        begin()
        model.step()
        return [len(user.inbox) for user in model.users], [sum(user.inbox) for user in model.users]

    return exchange


if __name__ == "__main__":
    perform(prepare)
