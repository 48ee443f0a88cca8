"""The gate of one companion as a plain loop, to compare with ours: the same rows, intervals and counters; the buffer is a list.

It decides and nothing more: no record, no budgets, no rounds, no times of day. Prints messages a second on one core.
"""

import platform
import re
import time

MESSAGES = 300_000
LULL = 10.0


class Gate:
    def __init__(self, starting_interval):
        self.starting_interval = starting_interval
        self.buffer = []
        self.cursor = 0
        self.counter = 0
        self.checks = 0
        self.next_at = None
        self.lull_at = None

    def interval(self, checks):
        return max(3, max(3, self.starting_interval - 3 * checks))

    def hear(self, seq, now, text, called):
        self.lull_at = None
        self.buffer.append((seq, now, text))
        self.counter += 1
        if self.next_at is None:
            self.next_at = self.interval(0)
        if called:
            return self.decline_address(seq)
        if self.counter >= self.next_at:
            return self.decline_interjection(seq)
        self.lull_at = now + LULL
        return None

    def settle(self, upto):
        settled = [said for said in self.buffer if said[0] <= upto]
        self.buffer = [said for said in self.buffer if said[0] > upto]
        self.cursor = upto
        return settled

    def decline_address(self, upto):
        record = ("NO", "direct_address", self.settle(upto), self.counter, self.checks)
        self.counter, self.checks, self.next_at = 0, 0, self.interval(0)
        return record

    def decline_interjection(self, upto):
        record = ("NO", "interjection", self.settle(upto), self.counter, self.checks)
        self.checks += 1
        following = self.next_at + self.interval(self.checks)
        self.next_at = following if following > self.counter else self.counter + self.interval(self.checks)
        return record


def measured(starting_interval, names):
    gate = Gate(starting_interval)
    known = re.compile(r"\b(?:%s)\b" % "|".join(re.escape("name%d" % n) for n in range(names)), re.IGNORECASE) if names else None
    texts = [
        "well, name%d what do you think of bread that has been kept for so many days? %02d" % (n % 7, n)
        if n % 10 == 0 and names
        else "I thought that the bread would be done by now, but nobody opened the oven since %02d" % n
        for n in range(50)
    ]
    messages = MESSAGES if names < 100 else MESSAGES // 10
    decisions = 0
    began = time.perf_counter()
    for seq in range(1, messages + 1):
        text = texts[seq % 50]
        called = known is not None and known.search(text) is not None
        if gate.hear(seq, float(seq), text, called) is not None:
            decisions += 1
    took = time.perf_counter() - began
    return messages / took, took / messages * 1e9


print("%-28s %14s %10s" % ("Python " + platform.python_version(), "messages/s", "ns each"))
for tier, interval in [("very_quiet", 15), ("quiet", 12), ("average", 9), ("eager", 6), ("very_eager", 3)]:
    print("%-28s %14.0f %10.0f" % (("gate, " + tier,) + measured(interval, 0)))
for names in (1, 10, 1000):
    print("%-28s %14.0f %10.0f" % (("gate with %d names" % names,) + measured(9, names)))
