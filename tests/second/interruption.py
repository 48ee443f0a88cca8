"""Section 4: one spoken reply and the people who talk over it. Letters (I1 …) are entries of HOLES.md."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Optional

from machine import MS, S, Machine, add_hop, overlap
from wording import Words, fold, spans

BASE = {"very_quiet": 0.10, "quiet": 0.20, "average": 0.30, "eager": 0.45, "very_eager": 0.60}
UNSOLICITED_BIAS = 0.35

SILENCE = 300 * MS
FINAL_WAIT = 1 * S
HOLD_LIMIT = 20 * S
PAUSE_VOICED, PAUSE_WITHIN = 500 * MS, 1 * S
TOLERANT_VOICED, TOLERANT_WITHIN = 2 * S, 3 * S
VERDICT_SILENCE = 800 * MS
VERDICT_LIMIT = 5 * S
LONG_TALK = 4 * S
PLAYBACK_LOST = 5 * S
TIMEOUT_MARGIN = 5 * S
ECHO_WINDOW = 5 * S
REWIND = 300 * MS
ENDS = ("done", "cut", "cancelled")


@dataclass
class Talker:
    talking: bool = False
    noise: bool = False
    awaiting: bool = False
    offset_at: Optional[int] = None
    last_voice: Optional[int] = None
    final_at: Optional[int] = None
    tolerant: bool = False
    hops: list = field(default_factory=list)


@dataclass
class Sentence:
    text: str
    words: Optional[list] = None
    number: int = 0
    audio: int = 0
    whole: bool = False
    dropped: bool = False

    def word_times(self):
        """(first character, end character, start, end) of each word, times in µs in the sentence."""
        where = spans(self.text)
        if self.words and len(self.words) == len(where):
            return [(a, b, s * MS, e * MS) for (a, b), (s, e) in zip(where, self.words)]
        total = len(self.text)
        if self.whole:
            length = Fraction(self.audio)
        else:
            length = max(Fraction(total * S, 15), Fraction(self.audio))
        return [(a, b, length * a / total, length * b / total) for a, b in where]


@dataclass
class Overlap:
    """One interruption, from the first onset over the reply to its verdict."""

    who: str
    draw: Optional[float]
    since: int
    tolerant: bool
    talkers: set = field(default_factory=set)
    finals: dict = field(default_factory=dict)
    partial: dict = field(default_factory=dict)
    paused_at: Optional[int] = None
    any_words: bool = False


class Interruption(Machine):
    def __init__(self, config):
        super().__init__(config)
        self.now = config.get("at", 0)
        self.companion = config["companion"]
        self.words = Words(config.get("stop_words"), config.get("backchannel"))
        for companion, names in config.get("companions", {self.companion: []}).items():
            self.words.join(companion, names)
        bias = UNSOLICITED_BIAS if config.get("unsolicited") else 0
        chance = BASE[config.get("tier", "average")] + config.get("mood", 0) + bias
        # Rounded, so that .30 + .35 compares like the decimal number it is.
        self.tolerance = round(min(max(chance, 0), 0.9), 9)
        self.text_channel = config.get("text_channel", True)
        self.main_timeout = config.get("main_timeout_us", 60 * S)
        self.state = "preparing"
        self.people = {}
        self.hold_since = None
        self.extended = False
        self.extend_pending = False
        self.timeout_from = self.now
        self.first_frame = None
        self.over = None
        self.echoes = 0
        self.pages = {}
        self.reset_audio()
        for user in config.get("talking", []):
            self.on_started({"user": user})

    def reset_audio(self):
        self.sentences = []
        self.audio_ready = False
        self.finished = False
        self.history = []
        self.position_now = 0
        self.lost_from = None

    def enter(self, state):
        self.state = state
        self.emit("state", state=state)

    def take(self, event):
        self.advance(event["at"])
        if self.state in ENDS:
            self.now = max(self.now, event["at"])
            return
        super().take(event)

    def person(self, user):
        return self.people.setdefault(user, Talker())

    def talkers(self):
        return [p for p in self.people.values() if not p.noise and p.last_voice is not None]

    def quiet_since(self):
        return max((p.last_voice for p in self.talkers()), default=self.over.since if self.over else 0)

    # Talk

    def on_started(self, e):
        p = self.person(e["user"])
        if p.talking:
            return
        p.talking, p.awaiting, p.offset_at = True, True, None
        p.last_voice = self.now
        if p.noise:
            return
        if self.state == "preparing":
            if self.hold_since is None:
                self.hold_since = self.now
                self.emit("hold")
        elif self.state == "speaking":
            self.interrupt(e["user"], e.get("draw"))
            self.emit("duck", user=e["user"], tolerant=self.over.tolerant)
            self.enter("ducked")
        else:
            self.over.talkers.add(e["user"])
            p.tolerant = self.is_tolerant(e.get("draw"))

    def is_tolerant(self, draw):
        return (1.0 if draw is None else draw) < self.tolerance

    def interrupt(self, user, draw):
        tolerant = self.person(user).tolerant = self.is_tolerant(draw)
        self.over = Overlap(user, draw, self.now, tolerant)
        self.over.talkers = {u for u, p in self.people.items() if p.talking and not p.noise} | {user}

    def on_voiced(self, e):
        p = self.person(e["user"])
        add_hop(p.hops, e["from"], e["to"])
        if not p.talking:
            return
        p.last_voice = max(p.last_voice, e["to"])
        if self.state == "ducked" and not p.noise:
            tolerant = p.tolerant if "I2b" in self.readings else self.over.tolerant
            need, within = (TOLERANT_VOICED, TOLERANT_WITHIN) if tolerant else (PAUSE_VOICED, PAUSE_WITHIN)
            if overlap(p.hops, self.now - within, self.now) >= need:
                self.pause("voiced", e["user"])

    def on_ended(self, e):
        p = self.person(e["user"])
        if p.talking:
            p.talking = False
            p.offset_at = self.now
            if "H6b" in self.readings and p.final_at is not None and p.final_at >= p.last_voice:
                p.awaiting = False
            p.last_voice = max(p.last_voice, min(e.get("ended", 0), self.now))
        p.noise = False

    def on_person_gone(self, e):
        self.on_ended({"user": e["user"]})

    def on_noise(self, e):
        """Rule 2.1: 30 s without a word, or words again."""
        p = self.person(e["user"])
        was, p.noise = p.noise, e.get("on", True)
        if was and not p.noise and p.talking:
            p.talking = False
            self.on_started(e)

    # Words

    def on_words(self, e):
        text, final = e["text"].strip(), e.get("is_final", False)
        if self.state != "preparing" and e.get("started", self.now) < self.first_frame:
            return
        p = self.person(e["user"])
        if final:
            p.final_at = self.now
            p.awaiting = p.awaiting and p.talking
        if not fold(text):
            return
        if self.is_echo(text) and not ("I22b" in self.readings and self.words.is_stop(text)):
            if final:
                self.echoes += 1
                self.emit("echo", user=e["user"], text=text)
                if self.echoes == 3:
                    self.emit("advise_headphones")
            return
        stop = self.is_stop(text)
        if final and e.get("greyed") and not stop:
            return
        addressed = bool(self.words.addressed(text))
        if self.state == "preparing":
            self.words_preparing(text, final)
            return
        if self.over:
            self.record_words(e["user"], text, final)
        if final:
            if stop or addressed:
                self.cut("stop_word" if stop else "address")
        elif self.state in ("speaking", "ducked") and (stop or addressed):
            if self.over is None:
                self.interrupt(e["user"], None)
                self.record_words(e["user"], text, final)
            self.pause("stop_word" if stop else "name", e["user"])

    def is_stop(self, text):
        return self.words.is_only_stop(text) if "I23b" in self.readings else self.words.is_stop(text)

    def record_words(self, user, text, final):
        if not ("I11b" in self.readings and self.words.is_backchannel(text)):
            self.over.any_words = True
        self.over.talkers.add(user)
        if final:
            self.over.finals.setdefault(user, []).append(text)
            self.over.partial.pop(user, None)
        else:
            self.over.partial[user] = text
            p = self.people[user]
            p.awaiting = True
            if not p.talking and p.offset_at is None:
                p.offset_at = self.now

    def words_preparing(self, text, final):
        to_it = self.companion in self.words.addressed(text)
        stop = self.words.is_only_stop(text) or (self.words.is_stop(text) and to_it)
        if stop and ("I4a" if final else "I5c") not in self.readings:
            self.cancel("stop_word")  # I4: a final does what a partial does.
        elif final and not self.extended and not self.words.is_backchannel(text):
            self.extend_pending = True

    def is_echo(self, text):
        if self.state == "preparing":
            return False
        since = max((p for at, p in self.history if at <= self.now - ECHO_WINDOW), default=0)
        played = set()
        for sentence, offset in self.placed():
            for a, b, start, end in sentence.word_times():
                if offset + start < self.position_now and offset + end > since:
                    played.update(fold(sentence.text[a:b]))
        words = fold(text)
        return bool(words) and 5 * sum(w in played for w in words) >= 4 * len(words)

    # Audio

    def on_sentence(self, e):
        self.sentences.append(Sentence(e["text"], e.get("words"), e["sentence"]))

    def sentence(self, e):
        """The sentence meant; None when it belongs to a stream that an extension has replaced."""
        return next((s for s in self.sentences if s.number == e["sentence"]), None)

    def on_audio(self, e):
        sentence = self.sentence(e)
        if sentence is None or sentence.dropped or e["ms"] <= 0:
            return
        if self.sent() == self.position():
            self.lost_from = self.now
        sentence.audio += e["ms"] * MS

    def on_whole(self, e):
        sentence = self.sentence(e)
        if sentence and not sentence.dropped:
            sentence.whole = True

    def on_first_audio(self, _e):
        self.audio_ready = True
        if self.state == "preparing" and self.hold_since is None and not self.extend_pending:
            self.speak()

    def on_finished(self, _e):
        self.finished = True
        if self.state == "preparing" and not self.audio_ready:
            self.fail("nothing_voiced")
        self.check_end()

    def on_stall(self, _e):
        for sentence in self.sentences:
            if not sentence.whole and not sentence.dropped:
                sentence.dropped = True
                self.emit("next_sentence", dropped=sentence.number)
                break

    def on_played(self, e):
        if self.first_frame is None:
            return
        page = e.get("page", "")
        position = min(e["ms"] * MS, self.sent())
        self.pages[page] = max(self.pages.get(page, 0), position)
        self.position_now = self.position()
        self.history.append((self.now, self.position_now))
        self.lost_from = self.now
        self.check_end()

    def sent(self):
        return sum(s.audio for s in self.sentences)

    def position(self):
        """P: the furthest sample played; of several pages the interrupter's, else the smallest."""
        if self.over and self.over.who in self.pages:
            return self.pages[self.over.who]
        return min(self.pages.values(), default=0)

    def check_end(self):
        if self.state in ("speaking", "ducked") and self.finished and self.position() >= self.sent():
            self.done()

    def placed(self):
        offset = 0
        for sentence in self.sentences:
            yield sentence, offset
            offset += sentence.audio

    def heard(self):
        position, parts = self.position(), []
        for sentence, offset in self.placed():
            end = max((b for _a, b, _s, e in sentence.word_times() if offset + e <= position), default=0)
            if end:
                parts.append(sentence.text[:end].strip())
        return " ".join(parts)

    def resume_from(self):
        position, previous = self.position(), None
        for sentence, offset in self.placed():
            if sentence.audio and offset <= position < offset + sentence.audio:
                break
            if sentence.audio:
                previous = (sentence, offset)
        else:
            # P is at the end of all that was sent: the last sentence is the present one.
            if previous is None:
                return 0
            sentence, offset = previous
            before = [(s, o) for s, o in self.placed() if s.audio and o < offset]
            previous = before[-1] if before else None
        kept = ([previous] if previous else []) + [(sentence, offset)]
        starts = [o + start for s, o in kept for _a, _b, start, _e in s.word_times() if o + start <= position - REWIND]
        return int(starts[-1]) if starts else offset

    # Transitions

    def speak(self):
        self.first_frame = self.lost_from = self.now
        self.emit("speak")
        self.enter("speaking")

    def pause(self, why, user):
        self.over.paused_at = self.now
        self.emit("pause", why=why, user=user)
        self.enter("yielded")

    def record(self, verdict):
        if self.over:
            o = self.over
            self.emit(
                "interrupted",
                who=o.who,
                draw=o.draw,
                tolerance=self.tolerance,
                verdict=verdict,
                at_ms=self.position() // MS,
            )

    def unduck(self):
        self.record("unduck")
        self.over = None
        self.emit("unduck")
        self.enter("speaking")

    def resume(self, verdict):
        self.record(verdict)
        start = self.resume_from()
        self.over = None
        self.lost_from = self.now
        self.emit("resume", from_ms=start // MS)
        self.enter("speaking")
        self.check_end()

    def cut(self, reason):
        self.record("cut")
        heard = self.heard()
        self.emit("cut", reason=reason, heard=heard, ms=self.position() // MS)
        self.enter("cut")

    def cancel(self, reason):
        self.record("cancelled")
        self.emit("cancelled", reason=reason)
        self.enter("cancelled")

    def done(self):
        self.record("done")
        parts = []
        position = self.position()
        for sentence, offset in self.placed():
            text = sentence.text
            if sentence.dropped:  # I17: of a dropped sentence only what was played counts.
                text = text[: max((b for _a, b, _s, e in sentence.word_times() if offset + e <= position), default=0)]
            if text.strip():
                parts.append(text.strip())
        self.emit("done", heard=" ".join(parts))
        self.enter("done")

    def fail(self, reason):
        self.emit("failed", reason=reason)
        self.enter("done")

    def on_stop_pressed(self, _e):
        self.cut("stop_pressed")

    def on_typed(self, e):
        """A typed message that is only a stop phrase acts as `stop_pressed`."""
        if self.words.is_only_stop(e["text"]):
            self.cut("stop_pressed")

    def on_call_ended(self, _e):
        self.cut("call_ended")

    def on_cancelled(self, _e):
        if self.heard():
            self.cut("cancelled")
        else:
            self.cancel("cancelled")

    def on_companion_joined(self, e):
        self.words.join(e["companion"], e.get("names", []))

    def on_companion_left(self, e):
        self.words.leave(e["companion"])

    # Deadlines

    def deadlines(self):
        if self.state == "preparing":
            yield from self.deadlines_preparing()
        elif self.state in ("speaking", "ducked"):
            if self.state == "ducked":
                if not ("I1c" in self.readings and any(p.talking for p in self.talkers())):
                    yield self.quiet_since() + SILENCE, 0, self.unduck
            if self.sent() > self.position():
                yield self.lost_from + PLAYBACK_LOST, 1, lambda: self.cut("playback_lost")
        elif self.state == "yielded":
            verdict = self.verdict_at()
            if verdict is not None:
                yield verdict, 0, self.verdict
            yield self.over.paused_at + VERDICT_LIMIT, 1, self.limit

    def deadlines_preparing(self):
        if self.hold_since is not None:
            moment = self.finals_by(self.talkers(), each=True)
            if moment is not None:
                yield max(moment, self.quiet_since() + SILENCE), 0, self.release
            yield self.hold_since + HOLD_LIMIT, 1, self.talked_over
        elif self.extend_pending:
            yield self.now, 0, self.release
        if not self.audio_ready and not self.finished:
            yield self.timeout_from + self.main_timeout + TIMEOUT_MARGIN, 2, lambda: self.fail("timeout")

    def finals_by(self, people, each):
        """When nobody's final is waited for any more; None while somebody without a final talks."""
        waited = [p for p in people if p.awaiting]
        if any(p.talking for p in waited):
            return None
        offsets = [p.offset_at for p in (waited if each else people) if p.offset_at is not None]
        return max(offsets) + FINAL_WAIT if waited and offsets else 0

    def release(self):
        held, self.hold_since = self.hold_since is not None, None
        if self.extend_pending:
            self.extend_pending, self.extended = False, True
            self.reset_audio()
            self.timeout_from = self.now
            self.emit("extend")
        else:
            if held:
                self.emit("go_on")
            if self.audio_ready:
                self.speak()
                self.check_end()

    def talked_over(self):
        if self.text_channel:
            self.emit("post_as_text")
            self.enter("done")
        else:
            self.fail("talked_over")

    def verdict_at(self):
        people = [self.people[u] for u in self.over.talkers if not self.people[u].noise]
        moment = self.finals_by(people, each=False)
        return None if moment is None else max(moment, self.quiet_since() + VERDICT_SILENCE)

    def verdict(self):
        o = self.over
        partials = [t for t in o.partial.values()]
        spoken = [t for texts in o.finals.values() for t in texts] + partials
        if any(self.is_stop(t) for t in partials):
            self.cut("stop_word")
        elif "I13b" not in self.readings and any(self.words.addressed(t) for t in partials):
            self.cut("address")
        elif all(self.words.is_backchannel(t) for t in spoken):
            self.resume("backchannel" if spoken else "nothing")
        elif max(overlap(p.hops, o.since, self.now) for p in self.people.values()) < LONG_TALK:
            self.resume("short")
        else:
            self.cut("talk")

    def limit(self):
        """5 s have passed since the pause."""
        o = self.over
        if o.any_words:
            self.cut("limit")
            return
        for user in sorted(o.talkers):
            if self.people[user].talking:
                self.people[user].noise = True
                self.emit("noise", user=user)
        self.resume("noise")
