"""What both machines share: time comes in with inputs, deadlines fire by themselves."""

MS = 1_000
S = 1_000_000
HOP = 16 * MS

# Readings of the text other than the literal one; the numbers are those of HOLES.md. A script without `readings` takes the first group.
TAKEN = {
    "H2c": "without an own detector the final that ends the talk starts the lull at its `ended`, and does not restart it",
    "H3b": "with an own detector the recogniser's SpeechStarted restarts nothing",
    "H4b": "finals without words restart nothing while the person counts as noise",
    "H6b": "a final that reaches the last voiced hop is final although it comes before the offset",
    "H7b": "a final that comes too late to be waited for is handed over early at once",
    "H12b": "a follow-up may begin before the last frame",
    "H18b": "a duplicate final changes nothing at all",
    "H21b": "backchannel is backchannel only during a reply; it hands nothing over early, and alone it leaves the lull to what is unsettled",
    "I1b": "hops of somebody whose talk has not ended count as an onset",
    "I8b": "a reply that will be extended does not fail",
    "I11b": "backchannel is no word for the 5 s",
    "I13b": "a name in a newest partial without a final is not an address in the verdict",
    "I16b": "a report of the same position is no playback",
    "I18b": "a reply ends when all was played and no audio comes for the main model's timeout + 5 s",
    "I22b": "a stop word is never echo",
}
OTHERS = {
    "H2b": "only finals with words that are not greyed restart the lull",
    "H5b": "a final restarts the lull that only waits for outstanding finals",
    "H7c": "early hand-over waits for a final until 2.0 s, whatever became of Finalize",
    "H11b": "one person and one companion goes before an address",
    "H31b": "VoiceQuiet leaves out messages of an early hand-over until a round has ended",
    "I4b": "a final stop word in Preparing extends like other words",
    "I5b": "a partial in Preparing never cancels",
    "I23b": "a stop word counts only as all of the utterance",
}
READINGS = TAKEN | OTHERS


class Machine:
    """Subclasses have one method `on_NAME(event)` per input, and `deadlines()`."""

    def __init__(self, config):
        self.readings = set(config.get("readings", TAKEN))
        unknown = self.readings - set(READINGS)
        if unknown:
            raise ValueError(f"unknown readings {sorted(unknown)}; known: {sorted(READINGS)}")
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
