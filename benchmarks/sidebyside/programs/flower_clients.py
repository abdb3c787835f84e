"""Flower's simulation: clients talk to a server alone, which hands each noisy label on in a second round."""

import logging
import random
from collections import defaultdict

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER, label, perform

logging.getLogger("flwr").setLevel(logging.ERROR)


def prepare(count, seed):
    client, server = ClientApp(), ServerApp()
    got, ones, began = [0] * count, [0] * count, []

    @client.query()
    def query(message: Message, context: Context) -> Message:
        asked = message.content["asked"]
        user = int(context.node_config["partition-id"])
        if "heard" in asked:
            told = {"user": user, "got": len(asked["heard"]), "ones": sum(asked["heard"])}
        else:
            draw = random.Random(f"{seed}/{user}")
            y_hat = label(user) ^ (draw.random() < ALPHA)
            told = {
                "user": user,
                "y_hat": int(y_hat),
                "peer": user // CLUSTER * CLUSTER + draw.randrange(CLUSTER),
            }
        return Message(RecordDict({"told": ConfigRecord(told)}), reply_to=message)

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        def ask(node: int, **asked) -> Message:
            return Message(RecordDict({"asked": ConfigRecord(asked)}), dst_node_id=node, message_type="query")

        nodes, heard, place = [], defaultdict(list), {}
        while len(nodes) < count:
            nodes = list(grid.get_node_ids())
        list(grid.send_and_receive([ask(node) for node in nodes[:2]]))  # starts what runs clients
        began[0]()
        for reply in grid.send_and_receive([ask(node) for node in nodes]):
            told = reply.content["told"]
            place[told["user"]] = reply.metadata.src_node_id
            heard[told["peer"]].append(told["y_hat"])
        for reply in grid.send_and_receive([ask(place[user], heard=said) for user, said in heard.items()]):
            told = reply.content["told"]
            got[told["user"]], ones[told["user"]] = told["got"], told["ones"]

    def exchange(begin):
        began.append(begin)
        resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
        run_simulation(server, client, num_supernodes=count, backend_config=resources)
        return got, ones

    return exchange


if __name__ == "__main__":
    perform(prepare)
