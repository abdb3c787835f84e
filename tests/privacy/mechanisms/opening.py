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
        """Secrets of which enough shares are held; those that take as many shares are put together at once."""
        alike: dict[tuple[int, int], list[int]] = {}
        for (what, giver), held in self.shares.items():
            if what == kind and len(held) >= self.need[giver]:
                alike.setdefault((len(held), self.need[giver]), []).append(giver)
        found = {}
        for (_, need), givers in alike.items():
            points = np.array([list(self.shares[kind, giver]) for giver in givers])
            values = np.array([list(self.shares[kind, giver].values()) for giver in givers], np.uint64)
            secrets = shamir.join_octets(shamir.recover(values, points, need), 32)
            found |= {giver: secrets[row : row + 1] for row, giver in enumerate(givers)}
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
        parts = [
            part
            for part in networkx.connected_components(graph)
            if all(u in self.seed and hidden[u] <= set(graph[u]) for u in part)
        ]
        known = {(u, p) for part in parts for u in part for p in masks.get(u, set()) - hidden[u]}
        totals = self._pairwise(known)
        out = []
        for part in parts:
            total = sum(value[u] - int(CRYPTO.masks(self.seed[u])[0]) - totals.get(u, 0) for u in part)
            out.append((frozenset(part), (total + (1 << 63)) % (1 << 64) - (1 << 63)))
        return out

    def _pairwise(self, known: set[tuple[int, int]]) -> dict[int, int]:
        """What each user's masks with peers add up to, where one of the two private keys is known."""
        totals: dict[int, int] = {}
        if not known:
            return totals
        ordered = sorted(known)
        ends = [(user, peer) if user in self.private else (peer, user) for user, peer in ordered]
        private = np.concatenate([self.private[mine] for mine, _ in ends])
        public = np.array([self.key[other] for _, other in ends])
        masks = CRYPTO.masks(CRYPTO.agreed(private, public)).tolist()
        for (user, peer), mask in zip(ordered, masks, strict=True):
            totals[user] = totals.get(user, 0) + (mask if user < peer else -mask)
        return totals
