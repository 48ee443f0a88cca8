#!/usr/bin/env python3
"""Second implementation of the rules of voice.

second.py run SCRIPT [--state]      effects of a script, one JSON object per line ("-": standard input)
second.py generate MACHINE SEED     a random script; MACHINE is handover or interruption
second.py compare COUNT FIRST_SEED  scripts of both machines with their effects, one JSON object per script
second.py readings COUNT            how many of COUNT random scripts each reading of HOLES.md changes
second.py soak COUNT [FIRST_SEED]   runs random scripts for both machines and checks invariants
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import script  # noqa: E402
from handover import HandOver  # noqa: E402
from interruption import ENDS, Interruption  # noqa: E402
from machine import READINGS, TAKEN, expand  # noqa: E402

MACHINES = {"handover": HandOver, "interruption": Interruption}


def run(events):
    """Runs a script to the end of its last deadline; returns the machine with its effects."""
    config, *rest = events
    machine = MACHINES[config["machine"]](config)
    for event in expand(rest):
        machine.take(event)
    machine.advance()
    return machine


def check(events, machine):
    """Invariants that hold for every script, whatever the random order."""
    effects = machine.effects
    times = [e["at"] for e in effects]
    assert times == sorted(times), "effects go back in time"
    if isinstance(machine, Interruption):
        waits = machine.state in ENDS or (machine.state == "speaking" and machine.position() >= machine.sent())
        assert waits, f"state {machine.state} waits without a deadline"
        assert sum(e["effect"] == "extend" for e in effects) <= 1, "extended twice"
        assert sum(e["effect"] in ("done", "cut", "cancelled", "failed", "post_as_text") for e in effects) <= 1
        for e in effects:
            if e["effect"] == "cut":
                assert e["ms"] * 1000 <= machine.sent(), "heard more than was sent"
    else:
        said = [e["segment"] for e in effects if e["effect"] == "segment" and not e["greyed"]]
        redacted = [s for e in effects if e["effect"] == "redact" for s in e["segments"]]
        batches = [e["messages"] for e in effects if e["effect"] == "hand_over"]
        handed = [s for batch in batches for m in batch for s in m["segments"]]
        assert sorted(said) == sorted(handed + redacted), "a segment is lost or doubled"
        for batch in batches:
            assert batch, "an empty hand-over"
            assert all(a["user"] != b["user"] for a, b in zip(batch, batch[1:])), "a run is split"
            assert all(a["started"] <= b["started"] for a, b in zip(batch, batch[1:])), "wrong order"
        owner = {e["segment"]: e["user"] for e in effects if e["effect"] == "segment"}
        assert all(owner[s] == m["user"] for b in batches for m in b for s in m["segments"]), "wrong speaker"


def main(arguments):
    match arguments:
        case ["run", path, *rest]:
            text = sys.stdin.read() if path == "-" else Path(path).read_text()
            events = [json.loads(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]
            for effect in run(events).effects:
                if effect["effect"] != "state" or "--state" in rest:
                    print(json.dumps(effect, ensure_ascii=False))
        case ["generate", machine, seed]:
            for event in script(int(seed), machine):
                print(json.dumps(event, ensure_ascii=False))
        case ["compare", count, first]:
            for seed in range(int(first), int(first) + int(count)):
                for name in MACHINES:
                    events = script(seed, name)
                    machine = run(events)
                    check(events, machine)
                    found = {"machine": name, "seed": seed, "config": events[0], "events": events[1:], "effects": machine.effects}
                    print(json.dumps(found, ensure_ascii=False))
        case ["readings", count]:
            for reading, meaning in READINGS.items():
                name = "handover" if reading.startswith("H") else "interruption"
                names = ["handover", "interruption"] if reading == "H6b" else [name]
                for name in names:
                    changed = 0
                    for seed in range(int(count)):
                        config, *rest = script(seed, name)
                        other = [{**config, "readings": sorted(set(TAKEN) ^ {reading})}, *rest]
                        effects = run(other)
                        check(other, effects)
                        changed += effects.effects != run([config, *rest]).effects
                    print(f"{reading:5} {name:12} {changed:5} of {count}  {meaning}")
        case ["soak", count, *rest]:
            first = int(rest[0]) if rest else 0
            seen = {}
            for seed in range(first, first + int(count)):
                for name in MACHINES:
                    events = script(seed, name)
                    try:
                        machine = run(events)
                        check(events, machine)
                    except Exception as error:
                        raise SystemExit(f"{name} {seed}: {error!r}") from error
                    for e in machine.effects:
                        kind = " ".join(str(e[k]) for k in ("effect", "cause", "why", "reason", "verdict", "state") if k in e)
                        seen[kind] = seen.get(kind, 0) + 1
            for kind, number in sorted(seen.items()):
                print(f"{number:7} {kind}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:
        pass
