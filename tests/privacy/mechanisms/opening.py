"""What an aggregator and colluding users can open of secure aggregation, from their own messages and draws alone."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np

from p2p_sim.crypto import field, pairs, shamir
from protocols.secure_aggregation import LIMBS

CRYPTO = pairs.Modelled()
Sums = list[tuple[frozenset[int], int]]
"""Sets of honest users, and the sum of what each of them masked: her label and her own share of the noise."""


def draws(seen: Any, name: str) -> dict[int, Any]:
    """What each of a view's users drew under a name, in order."""
    out: dict[int, list[int]] = {}
    for key, drawn in seen.draws.items():
        if key.split("/")[:2] == ["user", name]:
            for party, value in zip(drawn["party"].tolist(), drawn["value"].tolist(), strict=True):
                out.setdefault(party, []).append(value)
    return {party: np.array(values, np.uint64) for party, values in out.items()}


class Opening:
    """The attack.  ``colluders``: ids.  A share is read by the colluder it is for as soon as the aggregator has it."""

    def __init__(self, run: Any, colluders: list[int]):
        self.colluders = set(colluders)
        view = run.view("+".join(["aggregator", *(f"user:{user}" for user in colluders)]))
        self.told = {
            kind: {name: column.tolist() if column.ndim == 1 else column for name, column in columns.items()}
            for kind, columns in view.messages.items()
        }
        near = self.told["neighbour"]
        self.place = dict(zip(zip(near["recipient"], near["peer"], strict=True), near["place"], strict=True))
        self.need = dict(zip(near["recipient"], near["need"], strict=True))
        self.key = dict(zip(self.told["advertise"]["sender"], self.told["advertise"]["key"], strict=True))
        self.shares: dict[tuple[str, int], dict[int, Any]] = {}
        # whose share the aggregator passes on to whom she knows from its envelope, though the field is sealed
        routed = run.messages("routed")
        self.routed = list(zip(routed["giver"].tolist(), routed["recipient"].tolist(), strict=True))
        self._held(run.messages("share"))
        self._revealed()
        self.private = {user: self._octets(drawn) for user, drawn in draws(view, "private key").items()}
        self.private |= self._recovered("private")
        self.seed = self._recovered("seed")

    def _held(self, shares: Any) -> None:
        """Take the shares for colluders, whether or not the aggregator passed them on."""
        near = self.told["neighbour"]
        reader = dict(zip(zip(near["recipient"], near["seq"], strict=True), near["peer"], strict=True))
        for i, (giver, seq) in enumerate(zip(shares["sender"].tolist(), shares["seq"].tolist(), strict=True)):
            if reader[giver, seq] in self.colluders:
                for kind in ("seed", "private"):
                    self._take(kind, giver, reader[giver, seq], shares[kind][i])

    def _revealed(self) -> None:
        ask, reveal = self.told["ask"], self.told["reveal"]
        about = dict(zip(ask["seq"], zip(ask["giver"], ask["stayed"], strict=True), strict=True))
        for i, (user, seq) in enumerate(zip(reveal["sender"], reveal["seq"], strict=True)):
            giver, stayed = about[seq]
            self._take("seed" if stayed else "private", giver, user, reveal["value"][i])

    def _take(self, kind: str, giver: int, holder: int, share: Any) -> None:
        self.shares.setdefault((kind, giver), {})[self.place[giver, holder]] = share

    def _recovered(self, kind: str) -> dict[int, Any]:
        found = {}
        for (what, giver), held in self.shares.items():
            if what == kind and len(held) >= self.need[giver]:
                points, values = np.array(list(held)), np.array(list(held.values()), np.uint64)
                secret = shamir.recover(values[None], points[None], self.need[giver])
                found[giver] = shamir.join_octets(secret, 32)
        return found

    @staticmethod
    def _octets(drawn: Any) -> Any:
        secret = drawn.reshape(1, LIMBS).copy()
        secret[:, -1] &= np.uint64((1 << 32) - 1)
        return field.to_octets(secret, 32)

    def sums(self) -> Sums:
        """Every least set of honest users whose masked values add up to something without a mask."""
        reports, masks = self.told["report"], dict[int, set[int]]()
        for giver, user in self.routed:
            masks.setdefault(user, set()).add(giver)
        counts = dict(zip(reports["sender"], reports["masks"], strict=True))
        value = dict(zip(reports["sender"], reports["value"], strict=True))
        # of who says she put on fewer masks than came, nobody knows which
        fine = {u for u in value if u not in self.colluders and len(masks.get(u, ())) == counts[u]}
        hidden = {u: {p for p in masks.get(u, ()) if not ({u, p} & self.private.keys())} for u in fine}
        graph = networkx.Graph()
        graph.add_nodes_from(fine)
        graph.add_edges_from((u, p) for u in fine for p in hidden[u] & fine if u in hidden[p])
        out = []
        for part in networkx.connected_components(graph):
            if all(u in self.seed and hidden[u] <= set(graph[u]) for u in part):
                total = sum(self._bare(u, value[u], masks.get(u, set()) - hidden[u]) for u in part)
                out.append((frozenset(part), (total + (1 << 63)) % (1 << 64) - (1 << 63)))
        return out

    def _bare(self, user: int, value: int, known: set[int]) -> int:
        """A masked value without its self mask and the masks that are known."""
        value -= int(CRYPTO.masks(self.seed[user])[0])
        for peer in known:
            mine, other = (user, peer) if user in self.private else (peer, user)
            mask = int(CRYPTO.masks(CRYPTO.agreed(self.private[mine], self.key[other][None]))[0])
            value -= mask if user < peer else -mask
        return value
