"""Random scripts. The same seed gives the same script with every Python from 3.11 on."""

import random

from machine import HOP, MS, S
from wording import spans

NAMES = {"arya": ["Arya"], "bo": ["Bo", "Bobby"], "cleo": ["Cleo"]}
TALK = ["I think so too", "what about the other one", "let me say something", "that is not how it was", "look over there"]
BACK = ["mhm", "Yeah.", "right, right", "Okay"]
STOP = ["stop", "wait, please", "hold on", "no no", "Arya, stop", "stop it now"]
NAMED = ["Arya what do you think", "I asked Bo about it", "tell me Cleo"]
SPOKEN = [
    "The garden was quiet in the evening.",
    "Nobody had watered the roses, and it showed.",
    "Wait until you see the pond!",
    "It is small.",
    "今日は静かです。",
]


def ticks(rng, low, high):
    """A length between `low` and `high` µs, in whole hops."""
    return HOP * round(rng.uniform(low, high) / HOP)


def length(rng):
    """0.1 to 20 s; short talk is more frequent."""
    return ticks(rng, *rng.choice([(0.1 * S, 0.5 * S), (0.1 * S, 0.5 * S), (0.5 * S, 3 * S), (0.5 * S, 3 * S), (3 * S, 20 * S)]))


def utterance(rng, user, start, spoken, settings):
    """One stretch of talk: onset after three hops, offset 0.3 s after the last voiced one."""
    end = start + max(length(rng), 3 * HOP)
    events = [{"at": start + 3 * HOP, "input": "started", "user": user, "started": start}]
    if settings["draws"] and rng.random() < 0.9:
        events[0]["draw"] = round(rng.random(), 2) + 0.005  # Never exactly a probability.
    low = start
    while low < end:
        high = min(low + ticks(rng, 0.2 * S, 4 * S), end)
        events.append({"at": low, "input": "voiced", "user": user, "from": low, "to": high})
        if settings["draws"] and rng.random() < 0.5:
            events[-1]["draw"] = round(rng.random(), 2) + 0.005
        low = high + ticks(rng, 0, 0.29 * S)  # The detector bears up to 18 hops without voice.
    last = max(e["to"] for e in events if "to" in e)
    if not settings.get("detector", True):
        events = [{"at": start + ticks(rng, 0.1 * S, 0.4 * S), "input": "speech_started", "user": user}]
    if rng.random() < 0.97 and settings.get("detector", True):
        events.append({"at": last + 300 * MS, "input": "ended", "user": user, "ended": last})
    text = rng.choice(rng.choice([TALK, TALK, BACK, STOP, NAMED, spoken()]))
    words = text.split()
    words_name = "words" if settings["one_words_input"] else None
    at, said = start + 400 * MS, 0
    while at < last + 300 * MS and rng.random() < 0.9:
        said = min(said + 1, len(words))
        events.append(partial(words_name, at, user, " ".join(words[:said]), start))
        at += 400 * MS
    kind = rng.choice(["final", "final", "final", "late", "twice", "empty", "never", "two", "flag"])
    delay = {"late": ticks(rng, 2 * S, 9 * S)}.get(kind, ticks(rng, 0.05 * S, 1.2 * S))
    at = last + delay
    pieces = {"never": [], "empty": [""], "two": [text, "and then"], "twice": [text, text]}.get(kind, [text])
    middle = start + HOP * ((last - start) // HOP // 2)
    for i, piece in enumerate(pieces):
        bounds = (start, last)
        if kind == "two":
            bounds = (start, middle) if i == 0 else (middle, last)
        events.append(final(words_name, at + i * 200 * MS, user, piece, *bounds, rng, kind))
    return events, last


def partial(name, at, user, text, started):
    if name:
        return {"at": at, "input": "words", "user": user, "text": text, "is_final": False, "started": started}
    return {"at": at, "input": "partial", "user": user, "text": text}


def final(name, at, user, text, started, ended, rng, kind):
    event = {"at": at, "input": name or "final", "user": user, "text": text, "started": started}
    if name:
        event["is_final"] = True
        if ended - started < 300 * MS:
            event["greyed"] = True
        return event
    event["ended"] = ended
    if kind == "flag":
        event["speech_final"] = False
        event["from_finalize"] = rng.random() < 0.5
    if rng.random() < 0.05:
        event["no_speech_prob"] = 0.9
    return event


def talk(rng, users, until, spoken, settings, first=0):
    events = []
    for user in users:
        at = max(first + ticks(rng, -1 * S, 6 * S), 0)
        while at < until:
            some, last = utterance(rng, user, at, spoken, settings)
            events += some
            at = last + 300 * MS + ticks(rng, 0.1 * S, rng.choice([1 * S, 4 * S, 9 * S, 18 * S]))
    return events


def handover(rng):
    users = ["ana", "ben", "cy"][: rng.randint(1, 3)]
    companions = rng.sample(sorted(NAMES), rng.randint(0, 3))
    until = ticks(rng, 10 * S, 90 * S)
    config = {"at": 0, "input": "config", "machine": "handover"}
    if rng.random() < 0.15:
        config["voice_address_us"] = rng.choice([3 * S, 6 * S])
    if rng.random() < 0.1:
        config["partials"] = False
    if rng.random() < 0.15:
        config["detector"] = False
    events = [{"at": 0, "input": "joined", "user": u} for u in users]
    lull = lambda: rng.choice([5 * S, 5 * S, 3 * S, 8 * S])
    events += [{"at": 0, "input": "companion_joined", "companion": c, "names": NAMES[c], "lull_us": lull()} for c in companions]
    settings = {"draws": False, "one_words_input": False, "detector": config.get("detector", True)}
    events += talk(rng, users, until, lambda: TALK, settings)
    for _ in range(rng.randint(0, 4)):
        at, user, companion = ticks(rng, 1 * S, until), rng.choice(users), rng.choice(sorted(NAMES))
        events += rng.choice(
            [
                [{"at": at, "input": "muted", "user": user}, {"at": at + ticks(rng, 1 * S, 9 * S), "input": "unmuted", "user": user}],
                [{"at": at, "input": "left", "user": user}],
                [{"at": at, "input": "left", "user": user}, {"at": at + ticks(rng, 1 * S, 9 * S), "input": "joined", "user": user}],
                [{"at": at, "input": "socket_lost", "user": user}],
                [{"at": at, "input": "socket_lost", "user": user}, {"at": at + ticks(rng, 1 * S, 9 * S), "input": "socket_back", "user": user}],
                [{"at": at, "input": "opt_out", "user": user}],
                [{"at": at, "input": "opt_out", "user": user}, {"at": at + ticks(rng, 1 * S, 9 * S), "input": "opt_in", "user": user}],
                [{"at": at, "input": "partial", "user": user, "text": ""}],
                [{"at": at, "input": "companion_joined", "companion": companion, "names": NAMES[companion], "lull_us": lull()}],
                [{"at": at, "input": "companion_left", "companion": companion}],
                [{"at": at, "input": "typed", "user": user, "text": "hello"}],
                [{"at": at, "input": "text_lull"}],
                [{"at": at, "input": "utterance_end", "user": user}],
                [{"at": at, "input": "speech_started", "user": user}],
                [{"at": at, "input": "extend"}],
                [{"at": at, "input": "round_ended"}],
                [{"at": at, "input": "settled", "messages": [rng.randint(1, 5)]}],
                [{"at": at, "input": "restart", "connected": rng.choice([users, users[:1], []])}],
            ]
        )
        if companions and rng.random() < 0.5:
            reply = {"at": at + 4 * S, "input": "reply_ended", "companion": companions[0], "author": user, "last_frame": at + 4 * S}
            events += [{"at": at, "input": "reply_started", "companion": companions[0]}, reply]
    if rng.random() < 0.1:
        events = [e for e in events if e["input"] != "joined" or e["at"] < until]
        events.append({"at": until, "input": "call_ended"})
    return config, events


def interruption(rng):
    users = ["ana", "ben", "cy"][: rng.randint(1, 3)]
    names = rng.sample(sorted(NAMES), rng.randint(1, 3))
    until = ticks(rng, 8 * S, 40 * S)
    config = {
        "at": 0,
        "input": "config",
        "machine": "interruption",
        "companion": names[0],
        "companions": {n: NAMES[n] for n in names},
        "tier": rng.choice(["very_quiet", "quiet", "average", "eager", "very_eager"]),
        "mood": rng.choice([-0.2, 0, 0, 0.1, 0.2]),
        "unsolicited": rng.random() < 0.3,
        "text_channel": rng.random() < 0.7,
    }
    spoken = lambda: rng.sample(SPOKEN, 1)
    first = ticks(rng, 0.2 * S, 4 * S)
    calm = first if rng.random() < 0.7 else 0
    events = talk(rng, users, until, spoken, {"draws": True, "one_words_input": True}, calm)
    if rng.random() < 0.15:
        # Somebody talks already when the machine begins.
        config["talking"] = ["dee"]
        last = ticks(rng, 0.1 * S, 3 * S)
        events.append({"at": 0, "input": "voiced", "user": "dee", "from": 0, "to": last})
        events.append({"at": last + 300 * MS, "input": "ended", "user": "dee", "ended": last})
        if rng.random() < 0.6:
            at = last + ticks(rng, 0.1 * S, 1.5 * S)
            text = rng.choice(rng.choice([TALK, BACK, STOP]))
            events.append({"at": at, "input": "words", "user": "dee", "text": text, "is_final": True, "started": 0})
    at, sent, sentence_count = first - HOP, 0, rng.randint(1, 4)
    plan = []  # (moment, sent so far in ms)
    for i in range(sentence_count):
        text = (" " if i else "") + rng.choice(SPOKEN)
        event = {"at": max(at, 0), "input": "sentence", "sentence": i, "text": text}
        pieces = rng.randint(2, 30)
        if rng.random() < 0.3:
            count = len(spans(text))
            each = pieces * 200 // count
            event["words"] = [[k * each, (k + 1) * each, end] for k, (_first, end) in enumerate(spans(text))]
        events.append(event)
        for _ in range(pieces):
            at += 120 * MS
            sent += 200
            events.append({"at": max(at, 0), "input": "audio", "sentence": i, "ms": 200})
            plan.append((at, sent))
        if rng.random() < 0.85:
            events.append({"at": at, "input": "whole", "sentence": i})
        else:
            events.append({"at": at + 2 * S, "input": "stall"})
    if rng.random() < 0.95:
        events.append({"at": first, "input": "first_audio"})
    if rng.random() < 0.5:
        # After an extension the new answer's audio comes; otherwise this changes nothing.
        events.append({"at": first + ticks(rng, 0, 8 * S), "input": "first_audio"})
    if rng.random() < 0.9:
        events.append({"at": at + ticks(rng, 0, 2 * S), "input": "finished"})
    # The page reports what it plays; it stands still at times, and goes a little back after a resume.
    position, at = 0, first
    while at < until and rng.random() < 0.995:
        at += 100 * MS
        available = max((s for t, s in plan if t <= at), default=0)
        if rng.random() < 0.03:
            at += ticks(rng, 0.2 * S, rng.choice([1 * S, 6 * S]))
            position = max(0, position - rng.choice([0, 300, 700]))
        position = min(position + 100, available)
        events.append({"at": at, "input": "played", "ms": position})
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at, user, companion = ticks(rng, 0, until), rng.choice(users), rng.choice(sorted(NAMES))
        events.append(
            rng.choice(
                [
                    {"at": at, "input": "cancelled"},
                    {"at": at, "input": "stop_pressed"},
                    {"at": at, "input": "call_ended"},
                    {"at": at, "input": "person_gone", "user": user},
                    {"at": at, "input": "person_gone", "user": user},
                    {"at": at, "input": "noise", "user": user, "on": True},
                    {"at": at, "input": "typed", "user": user, "text": rng.choice(["stop", "hello"])},
                    {"at": at, "input": "companion_joined", "companion": companion, "names": NAMES[companion]},
                    {"at": at, "input": "companion_left", "companion": companion},
                    {"at": at, "input": "stall"},
                    {"at": at, "input": "words", "user": user, "text": "", "is_final": False, "started": at},
                ]
            )
        )
    return config, events


def script(seed, machine):
    rng = random.Random(f"{machine} {seed}")
    config, events = {"handover": handover, "interruption": interruption}[machine](rng)
    # A person who has left for good, or opted out, may still be in the script: machines must bear it.
    return [config, *sorted(events, key=lambda e: e["at"])]
