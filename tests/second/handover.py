"""Section 2: when speech becomes messages. Letters in comments (H1 …) are entries of HOLES.md."""

from dataclasses import dataclass, field
from typing import Optional

from machine import HOP, MS, S, Machine, add_hop, overlap
from wording import Words

OUTSTANDING = 1 * S
EARLY_FINAL = 2 * S
WORDLESS = 30 * S
SEGMENT_CUT = 15 * S
SOCKET_GONE = 10 * S
MIN_VOICED = 300 * MS
NO_SPEECH = 0.6


@dataclass
class Person:
    name: str
    here: bool = True
    muted: bool = False
    lost_at: Optional[int] = None
    opted_out: bool = False
    talking: bool = False
    noise: bool = False
    newest_word: int = 0
    cut_at: int = 0
    outstanding: bool = False
    offset_at: Optional[int] = None
    finalize_at: Optional[int] = None
    early_from: Optional[int] = None
    final_to: Optional[int] = None
    answered: bool = False
    hops: list = field(default_factory=list)
    finals: set = field(default_factory=set)

    def hears(self):
        return self.here and not self.muted and self.lost_at is None and not self.opted_out


class HandOver(Machine):
    def __init__(self, config):
        super().__init__(config)
        self.default_lull = config.get("voice_lull_us", 5 * S)
        self.address_timeout = config.get("voice_address_us", 1 * S)
        self.follow_up = config.get("follow_up_us", 10 * S)
        self.idle_finalize = config.get("idle_finalize_us", 500 * MS)
        self.detector = config.get("detector", True)
        self.partials = config.get("partials", True)
        self.words = Words(config.get("stop_words"), config.get("backchannel"))
        self.people = {}
        self.companions = {}
        self.buffer = []
        self.unsettled = []
        self.in_round = set()
        self.last_batch = []
        self.next_segment = 1
        self.next_message = 1
        self.lull_from = None
        self.lull_base = None
        self.last_ended = 0
        self.waiting_gates = set()
        self.text_waiting = False
        self.follow = None
        self.reply_from = None
        self.replies = []
        self.call = True
        self.restarted = False
        self.restored = set()

    def take(self, event):
        super().take(event)
        self.forget_gone()

    # Who is here

    def on_joined(self, e):
        person = self.people.setdefault(e["user"], Person(e["user"]))
        if not person.here:
            person.here, person.muted, person.lost_at = True, False, None
        self.restarted, self.call = False, True

    def on_left(self, e):
        self.off(e, lambda p: setattr(p, "here", False))

    def on_muted(self, e):
        self.off(e, lambda p: setattr(p, "muted", True))

    def on_unmuted(self, e):
        self.people[e["user"]].muted = False

    def on_socket_lost(self, e):
        # Whose socket is lost already is gone ten seconds after the first loss.
        self.off(e, lambda p: setattr(p, "lost_at", self.now if p.lost_at is None else p.lost_at))

    def on_socket_back(self, e):
        self.people[e["user"]].lost_at = None

    def off(self, e, mark):
        """Mute, leaving and a lost socket count as an offset; the words stay."""
        person = self.people.get(e["user"])
        if person is None or not person.here:
            return
        if person.talking or person.noise:
            talked = person.talking
            person.noise = False
            if talked:
                self.offset(person, self.now, finalize=True)
        elif person.outstanding and person.finalize_at is None:
            self.finalize(person)
        mark(person)

    def forget_gone(self):
        """H7: earlier talk of who has left does not count once there is nothing left to hand over."""
        for p in self.people.values():
            if not p.here and not p.outstanding and not any(s["user"] == p.name for s in self.buffer):
                p.early_from = None

    def on_opt_out(self, e):
        person = self.people.get(e["user"])
        if person is None:
            return
        redacted = [s["segment"] for s in self.buffer if s["user"] == person.name]
        self.buffer = [s for s in self.buffer if s["user"] != person.name]
        if redacted:
            self.emit("redact", user=person.name, segments=redacted)
        talked = person.talking
        person.talking = person.noise = person.outstanding = False
        person.early_from = person.finalize_at = None
        person.hops.clear()
        person.opted_out = True
        if talked:  # H16: counts as an offset, so that the lull can end.
            self.last_ended = max(self.last_ended, self.now)
            self.quiet_from(self.last_ended)

    def on_opt_in(self, e):
        self.people[e["user"]].opted_out = False

    def on_companion_joined(self, e):
        if self.waiting_gates and e["companion"] not in self.companions:
            self.waiting_gates.add(e["companion"])  # H15: it waits as well.
        self.companions[e["companion"]] = e.get("lull_us", self.default_lull)
        self.words.join(e["companion"], e.get("names", []))

    def on_companion_left(self, e):
        self.companions.pop(e["companion"], None)
        self.words.leave(e["companion"])
        self.waiting_gates.discard(e["companion"])

    def lull(self):
        if self.waits_without_people():
            return self.default_lull  # H20: "5 s if nobody is connected"
        return self.smallest_lull()

    def smallest_lull(self):
        return min(self.companions.values(), default=self.default_lull)

    def waits_without_people(self):
        return self.restarted and bool(self.buffer) and not any(p.here for p in self.people.values())

    def someone_talks(self):
        return any(p.talking for p in self.people.values())

    # Talk

    def on_started(self, e):
        person = self.people.get(e["user"])
        if person and person.hears() and self.detector and not person.talking:
            person.noise = False
            self.onset(person)
            person.newest_word = e.get("started", self.now)

    def on_speech_started(self, e):
        """Deepgram's `SpeechStarted`: talk only without an own detector."""
        person = self.people.get(e["user"])
        if not person or not person.hears():
            return
        if not self.detector:
            if not person.talking:
                person.noise = False
                self.onset(person)
        elif "H3b" not in self.readings:
            self.restart_lull(self.has_run_out())

    def on_utterance_end(self, e):
        pass

    def on_audio(self, e):
        pass

    def on_voiced(self, e):
        person = self.people.get(e["user"])
        if person and person.hears():
            add_hop(person.hops, e["from"], e["to"])

    def on_ended(self, e):
        person = self.people.get(e["user"])
        if not person or not self.detector:
            return
        if person.noise:
            person.noise = False  # H4: the offset of noise is no speech event.
        elif person.talking:
            self.offset(person, e.get("ended", self.now))

    def onset(self, person):
        person.talking, person.outstanding, person.answered = True, True, False
        person.offset_at = person.finalize_at = person.early_from = None
        person.newest_word = person.cut_at = self.now
        self.lull_from = self.lull_base = None
        self.waiting_gates.clear()

    def offset(self, person, ended, finalize=False):
        person.talking = False
        person.offset_at = self.now
        person.early_from = ended
        if "H6b" in self.readings and person.final_to is not None and person.final_to >= ended - HOP:
            person.outstanding, person.answered = False, True
        person.final_to = None
        self.last_ended = max(self.last_ended, ended)
        if finalize or self.may_cause_early():
            self.finalize(person)
        self.quiet_from(self.last_ended)

    def quiet_from(self, moment):
        if not self.someone_talks():
            self.lull_from = self.lull_base = moment

    def has_run_out(self):
        return self.lull_from is not None and self.lull_from + self.lull() < self.now

    def restart_lull(self, had_run_out):
        if self.someone_talks() or not self.call:
            return
        if had_run_out and "H5b" not in self.readings:
            return  # H5: the timer has run out and only waits for outstanding finals.
        self.lull_from = self.lull_base = self.now

    def finalize(self, person, why="offset"):
        if person.outstanding:
            person.finalize_at = self.now
            self.emit("finalize", user=person.name, why=why)

    # Words

    def on_partial(self, e):
        person = self.people.get(e["user"])
        if person and not person.opted_out and e["text"].strip():
            self.heard_word(person)

    def heard_word(self, person):
        if person.noise and person.hears():
            person.noise = False
            self.onset(person)
        person.newest_word = self.now

    def on_final(self, e):
        person = self.people.get(e["user"])
        if person is None or person.opted_out:
            return
        text, started, ended = e["text"].strip(), e.get("started", self.now), e.get("ended", self.now)
        if text and (started, ended) in person.finals and "H18b" in self.readings:
            self.emit("duplicate", user=person.name, text=text)
            return
        last = e.get("speech_final", True) or e.get("from_finalize", False)
        if last and text:
            person.final_to = max(ended, person.final_to or 0)
        ends_talk = last and person.talking and not self.detector
        if ends_talk:
            person.outstanding, person.answered = False, True
            self.offset(person, ended if text else self.now)  # An empty final has no times.
        if last and person.offset_at is not None and not person.talking:
            person.outstanding, person.answered = False, True
        if text and (started, ended) in person.finals:
            self.emit("duplicate", user=person.name, text=text)
            return
        had_run_out = self.has_run_out()  # Its words may shorten the timeout (H20), which does not end the lull in the past.
        if text:
            person.finals.add((started, ended))
            if e.get("echo"):
                self.emit("echo", user=person.name, text=text)
            else:
                self.segment(person, e, text, started, ended)
        spoken = bool(self.buffer) and self.buffer[-1]["segment"] == self.next_segment - 1 and text
        ignored = person.noise and "H4b" in self.readings
        if ends_talk and "H2c" in self.readings:
            return
        if spoken or not ("H2b" in self.readings or ignored):
            self.restart_lull(had_run_out)  # H2: empty and greyed finals restart it too.

    def segment(self, person, e, text, started, ended):
        voiced = overlap(person.hops, started, ended) if self.detector else ended - started
        greyed = voiced < MIN_VOICED or e.get("no_speech_prob", 0) > NO_SPEECH
        number = self.next_segment
        self.next_segment += 1
        self.emit("segment", user=person.name, segment=number, text=text, greyed=greyed)
        if greyed:
            return
        self.heard_word(person)
        found = {"segment": number, "user": person.name, "text": text, "started": started, "ended": ended}
        is_backchannel = "H21b" in self.readings and self.words.is_backchannel(text) and self.during_reply(found)
        self.buffer.append({**found, "backchannel": is_backchannel, "addressed": self.words.addressed(text)})

    # The rest of the conversation

    def on_typed(self, e):
        pass

    def on_text_lull(self, e):
        """The text timer of a gate has fallen due."""
        if self.someone_talks() or self.buffer:
            self.text_waiting = True
        else:
            self.emit("text_lull")

    def on_reply_started(self, e):
        self.reply_from = self.now

    def on_reply_ended(self, e):
        """`author` wrote the message that was answered; `interrupter` is there after a cut."""
        last_frame = e.get("last_frame", self.now)
        if self.reply_from is not None:
            self.replies.append((self.reply_from, last_frame))
            self.reply_from = None
        people = {e["author"], e.get("interrupter")} - {None}
        self.follow = {"companion": e["companion"], "people": people, "last_frame": last_frame}

    def on_extend(self, e):
        """A reply in preparation takes the whole buffer: an early hand-over without endpoint."""
        if self.buffer:
            self.hand_over("extension", None)
            self.on_settled({"messages": self.last_batch})

    def on_settled(self, e):
        self.unsettled = [m for m in self.unsettled if m not in e["messages"]]

    def on_round_ended(self, e):
        """The round is over; what is unsettled now waits for the next end of the voice lull."""
        self.in_round.clear()
        if not self.unsettled:
            return
        if not self.call:
            self.arm()
        elif not self.someone_talks() and self.lull_from is None:
            self.lull_from = self.lull_base = self.now

    def on_call_ended(self, e):
        for person in self.people.values():
            self.on_left({"user": person.name})
        self.call = self.restarted = False
        self.lull_from = self.lull_base = None
        self.waiting_gates.clear()
        self.arm()

    def arm(self):
        if self.unsettled:
            self.emit("arm", messages=list(self.unsettled), due=self.now + self.lull())

    def on_restart(self, e):
        """The process starts again: segments without a hand-over are the buffer again."""
        connected = e.get("connected", [])
        for name, p in self.people.items():
            self.people[name] = Person(name, here=name in connected, opted_out=p.opted_out, finals=p.finals)
        self.follow = self.reply_from = None
        self.waiting_gates.clear()
        self.text_waiting = False
        self.restarted = not connected
        self.restored = {s["segment"] for s in self.buffer}
        self.last_ended = 0
        self.lull_from = self.lull_base = self.now

    # Deadlines

    def deadlines(self):
        for p in self.people.values():
            if p.talking:
                yield p.newest_word + WORDLESS, 0, lambda p=p: self.wordless(p)
                if not self.partials:
                    yield p.cut_at + SEGMENT_CUT, 1, lambda p=p: self.cut_segment(p)
            elif p.outstanding and p.finalize_at is None:
                yield p.offset_at + self.idle_finalize, 2, lambda p=p: self.finalize(p, "idle")
            if p.outstanding and p.finalize_at is not None:
                yield p.finalize_at + OUTSTANDING, 3, lambda p=p: self.give_up(p, outstanding=False)
            if p.here and p.lost_at is not None:
                yield p.lost_at + SOCKET_GONE, 4, lambda p=p: self.give_up(p, here=False)
            if self.awaits_early(p):
                yield self.early_due(p), 7, lambda p=p: self.early(p)
        outstanding = any(p.outstanding for p in self.people.values())
        if self.lull_from is not None and not outstanding:
            yield self.lull_from + self.lull(), 5, self.lull_ends
        gone = not any(p.here for p in self.people.values()) and not self.restarted
        if gone and self.buffer and not outstanding:
            yield self.now, 6, self.last_gone
        for name in sorted(self.waiting_gates):
            yield self.lull_base + self.companions[name], 8, lambda name=name: self.gate(name)

    def give_up(self, person, **changes):
        vars(person).update(changes)
        self.forget_gone()

    def wordless(self, person):
        """30 s without a word: an offset now, and noise until the next real one."""
        self.emit("noise", user=person.name)
        person.noise = True
        self.offset(person, self.now)

    def cut_segment(self, person):
        self.emit("cut_segment", user=person.name)
        person.cut_at = self.now

    def lull_ends(self):
        self.lull_base, self.lull_from = self.lull_from, None
        all_at_once = self.waits_without_people()
        now = [n for n, lull in sorted(self.companions.items()) if all_at_once or self.lull_base + lull <= self.now]
        later = {n for n in self.companions if n not in now}
        if self.buffer:
            newest = self.hand_over("lull", "all", gates=now, text_lull=self.text_waiting)
            if newest is None and "H21b" in self.readings and self.left_over():
                self.emit("voice_quiet", messages=self.left_over(), gates=now)
            self.text_waiting = False
        elif self.text_waiting and self.companions:
            self.emit("text_lull")
        elif self.left_over():
            self.emit("voice_quiet", messages=self.left_over(), gates=now)
        else:
            later = set()
        self.text_waiting = self.text_waiting and not self.companions
        self.waiting_gates = later

    def left_over(self):
        in_round = self.in_round if "H31b" in self.readings else set()
        return [m for m in self.unsettled if m not in in_round]

    def gate(self, name):
        """A gate with a larger timeout has waited out the rest."""
        self.waiting_gates.discard(name)
        if self.unsettled:
            self.emit("gate", companion=name, messages=list(self.unsettled))

    def last_gone(self):
        self.hand_over("gone", "all", text_lull=self.text_waiting)
        self.text_waiting = False
        self.lull_from = None
        self.waiting_gates.clear()

    # Early hand-over

    def early_on(self):
        return self.address_timeout < self.smallest_lull()

    def may_cause_early(self):
        return self.early_on() and bool(self.companions)  # H8

    def own(self, person):
        """What the person said that can be handed over early. What a restart has brought back waits for the lull."""
        return [s for s in self.buffer if s["user"] == person.name and not s["backchannel"] and s["segment"] not in self.restored]

    def early_cause(self, person):
        """(cause, companion for the endpoint), or None."""
        own = self.own(person)
        if not own or not self.may_cause_early():
            return None
        here = [p for p in self.people.values() if p.here]
        alone = len(here) == 1 and here[0] is person and len(self.companions) == 1
        addressed = any(name in self.companions for s in own for name in s["addressed"])
        if addressed and not (alone and "H11b" in self.readings):
            return "address", None
        if alone:
            return "alone", next(iter(self.companions))
        f = self.follow
        if f and self.follow_up > 0:
            if person.name in f["people"] and f["companion"] in self.companions:
                earliest = -self.follow_up if "H12b" in self.readings else 0
                if any(earliest <= s["started"] - f["last_frame"] <= self.follow_up for s in own):
                    return "follow_up", f["companion"]
        return None

    def awaits_early(self, person):
        if "H7b" in self.readings:
            return not person.talking and self.early_cause(person) is not None
        return person.early_from is not None

    def early_due(self, person):
        ended = person.early_from
        if "H7b" in self.readings:
            ended = max([s["ended"] for s in self.own(person)] + ([] if ended is None else [ended]))
        limit = ended + max(self.address_timeout, EARLY_FINAL)
        unanswered = "H7c" in self.readings and not person.answered
        if person.outstanding or unanswered or self.early_cause(person) is None:
            return limit
        return ended + self.address_timeout

    def early(self, person):
        cause = self.early_cause(person)
        if "H7b" not in self.readings:
            person.early_from = None
        if cause:
            self.hand_over(*cause)
            self.in_round |= set(self.last_batch)

    # Messages

    def hand_over(self, cause, endpoint, gates=None, text_lull=False):
        runs = []
        for s in sorted(self.buffer, key=lambda s: (s["started"], s["segment"])):
            if runs and runs[-1][-1]["user"] == s["user"]:
                runs[-1].append(s)
            else:
                runs.append([s])
        self.buffer = []
        messages = []
        for run in runs:
            messages.append(
                {
                    "message": self.next_message,
                    "user": run[0]["user"],
                    "text": " ".join(s["text"] for s in run),
                    "started": run[0]["started"],
                    "ended": max(s["ended"] for s in run),
                    "segments": [s["segment"] for s in run],
                }
            )
            self.next_message += 1
        self.last_batch = [m["message"] for m in messages]
        backchannel = [m["message"] for m in messages if self.words.is_backchannel(m["text"])]
        quiet = [m for m, run in zip(self.last_batch, runs) if m in backchannel and all(map(self.during_reply, run))]
        if "H21b" in self.readings:
            quiet = backchannel = [m for m, run in zip(self.last_batch, runs) if all(s["backchannel"] for s in run)]
        newest = max((n for n in self.last_batch if n not in backchannel), default=None)
        point = {"for": endpoint, "message": newest} if endpoint and newest else None
        fields = {"gates": gates} if gates is not None else {}
        self.emit("hand_over", cause=cause, endpoint=point, text_lull=text_lull, messages=messages, **fields)
        if quiet:
            self.emit("settled", messages=quiet, reason="backchannel")
        self.unsettled += [m for m in self.last_batch if m not in quiet]
        return newest

    def during_reply(self, segment):
        if self.reply_from is not None and segment["started"] >= self.reply_from:
            return True
        return any(a <= segment["started"] <= b for a, b in self.replies)
