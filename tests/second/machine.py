"""What both machines share: time comes in with inputs, deadlines fire by themselves."""

MS = 1_000
S = 1_000_000
HOP = 16 * MS


class Machine:
    """Subclasses have one method `on_NAME(event)` per input, and `deadlines()`."""

    def __init__(self):
        self.now = 0
        self.effects = []

    def emit(self, effect, **fields):
        self.effects.append({"at": self.now, "effect": effect, **fields})

    def deadlines(self):
        """Yields (moment, rank, function); at one moment the smaller rank fires first."""
        raise NotImplementedError

    def advance(self, before=None):
        """Fires every deadline earlier than `before`, or every deadline there is."""
        for _ in range(1_000_000):
            due = [(max(t, self.now), rank, i, f) for i, (t, rank, f) in enumerate(self.deadlines())]
            if not due:
                return
            moment, _rank, _i, fire = min(due, key=lambda d: d[:3])
            if before is not None and moment >= before:
                return
            self.now = moment
            fire()
        raise RuntimeError("a deadline fires for ever")

    def take(self, event):
        # Inputs of a moment come before its deadlines: only earlier ones fire here.
        self.advance(event["at"])
        if event["at"] < self.now:
            raise ValueError(f"input at {event['at']} after {self.now}: sort the script by `at`")
        self.now = event["at"]
        handler = getattr(self, "on_" + event["input"], None)
        if handler is None:
            raise ValueError(f"unknown input {event['input']!r} for {type(self).__name__}")
        handler(event)


def overlap(hops, low, high):
    """Voiced time between `low` and `high`; `hops` are disjoint (from, to)."""
    return sum(max(0, min(b, high) - max(a, low)) for a, b in hops)


def add_hop(hops, low, high):
    """Joins a hop to the ones before it; what was counted already is not counted again."""
    if hops:
        low = max(low, hops[-1][1])
    if high <= low:
        return
    if hops and hops[-1][1] == low:
        hops[-1] = (hops[-1][0], high)
    else:
        hops.append((low, high))


def expand(events):
    """Turns each `voiced` summary into one input per hop, delivered at the hop's end."""
    out = []
    for order, event in enumerate(events):
        if event["input"] == "voiced":
            low = event["from"]
            while low < event["to"]:
                high = min(low + HOP, event["to"])
                out.append((max(high, event["at"]), order, {**event, "at": max(high, event["at"]), "from": low, "to": high}))
                low = high
        else:
            out.append((event["at"], order, event))
    return [event for _at, _order, event in sorted(out, key=lambda e: e[:2])]
