"""Section 4: one spoken reply and the people who talk over it. Letters (I1 …) are entries of HOLES.md."""

from dataclasses import dataclass, field
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
    hops: list = field(default_factory=list)
    finals: list = field(default_factory=list)
    partial: Optional[str] = None

    def final_by(self):
        """When this person's final is not waited for any more. Without an offset it is 0.3 s after the last hop."""
        return (self.last_voice + SILENCE if self.talking else self.offset_at) + FINAL_WAIT


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
            return [(a, b, w[0] * MS, w[1] * MS) for (a, b), w in zip(where, self.words)]
        total = len(self.text)
        length = self.audio if self.whole else max(total * S // 15, self.audio)
        return [(a, b, length * a // total, length * b // total) for a, b in where]


@dataclass
class Overlap:
    """One interruption, from the first onset over the reply to its verdict."""

    who: str
    draw: Optional[float]
    tolerant: bool
    paused_at: Optional[int] = None


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
        self.played = []
        self.reset_audio()
        for user in config.get("talking", []):
            self.on_started({"user": user})

    def reset_audio(self):
        self.sentences = []
        self.audio_ready = False
        self.finished = False
        self.reported = 0
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

    def voices(self):
        return [p for p in self.people.values() if not p.noise]

    def quiet_since(self, default):
        return max((p.last_voice for p in self.voices() if p.last_voice is not None), default=default)

    def forget(self):
        """What was said and voiced so far does not count for the next interruption. Who talks goes on."""
        self.people = {user: p for user, p in self.people.items() if p.talking}
        for p in self.people.values():
            p.hops, p.finals, p.partial = [], [], None

    # Talk

    def on_started(self, e):
        p = self.person(e["user"])
        since = e.get("started", self.now)
        p.talking, p.noise, p.awaiting, p.offset_at, p.final_at = True, False, True, None, None
        p.last_voice = max(p.last_voice or 0, since)
        self.onset(e)
        self.on_voiced({"user": e["user"], "from": since, "to": self.now})

    def onset(self, e):
        if self.state == "preparing" and self.hold_since is None:
            self.hold_since = self.now
            self.emit("hold")
        elif self.state == "speaking":
            self.interrupt(e)
            self.emit("duck", user=e["user"], tolerant=self.over.tolerant)
            self.enter("ducked")

    def interrupt(self, e):
        draw = e.get("draw")
        self.over = Overlap(e["user"], draw, (1.0 if draw is None else draw) < self.tolerance)

    def on_voiced(self, e):
        p = self.people.get(e["user"])
        if p is None or not p.talking or p.noise:
            return
        add_hop(p.hops, e["from"], e["to"])
        p.last_voice = max(p.last_voice, e["to"])
        if "I1b" in self.readings:
            self.onset(e)
        if self.state == "ducked":
            need, within = (TOLERANT_VOICED, TOLERANT_WITHIN) if self.over.tolerant else (PAUSE_VOICED, PAUSE_WITHIN)
            if overlap(p.hops, self.now - within, self.now) >= need:
                self.pause("voiced", e["user"])

    def on_ended(self, e):
        p = self.people.get(e["user"])
        if p is None or not p.talking:
            return
        p.talking, p.offset_at = False, self.now
        p.last_voice = max(p.last_voice, min(e.get("ended", 0), self.now))
        if "H6b" in self.readings and p.final_at is not None and p.final_at >= p.last_voice:
            p.awaiting = False

    def on_person_gone(self, e):
        self.on_ended({"user": e["user"]})

    def on_noise(self, e):
        """Rule 2.1: 30 s without a word."""
        p = self.people.get(e["user"])
        if p is not None and p.talking:
            p.noise = True

    # Words

    def on_words(self, e):
        text, final = e["text"].strip(), e.get("is_final", False)
        if self.state != "preparing" and e.get("started", self.now) < self.first_frame:
            return
        stop = self.is_stop(text)
        echo = self.is_echo(text, e.get("started", self.now)) and not ("I22b" in self.readings and stop)
        if echo and final:
            self.echoes += 1
            self.emit("echo", user=e["user"], text=text)
            if self.echoes == 3:
                self.emit("advise_headphones")
        if echo or not fold(text) or (final and e.get("greyed") and not stop):
            text, stop = "", False
        if not final and not text:
            return
        p = self.person(e["user"]) if self.over else self.people.get(e["user"])
        if p is not None:
            self.note_words(p, text, final)
        addressed = bool(self.words.addressed(text))
        if self.state == "preparing":
            self.words_preparing(text, final)
        elif final and (stop or addressed):
            self.cut("stop_word" if stop else "address")
        elif self.state in ("speaking", "ducked") and (stop or addressed):
            if self.over is None:
                self.interrupt_by_words(e, text)
            self.pause("stop_word" if stop else "name", e["user"])

    def interrupt_by_words(self, e, text):
        p = self.person(e["user"])
        self.interrupt(e)
        self.note_words(p, text, False)

    def is_stop(self, text):
        return self.words.is_only_stop(text) if "I23b" in self.readings else self.words.is_stop(text)

    def note_words(self, p, text, final):
        if final:
            p.final_at, p.awaiting, p.partial = self.now, p.talking, None
            if text and self.over:
                p.finals.append(text)
            return
        p.final_at, p.awaiting = None, True
        if self.over:
            p.partial = text
        if not p.talking and p.offset_at is None:
            p.offset_at = self.now

    def words_preparing(self, text, final):
        if not text:
            return
        to_it = self.companion in self.words.addressed(text)
        stop = self.words.is_alone(text) or (self.words.is_stop(text) and to_it)
        if stop and ("I4b" if final else "I5b") not in self.readings:
            self.cancel("stop_word")  # I4: a final does what a partial does.
        elif final and not self.extended and not self.words.is_backchannel(text):
            self.extend_pending = True

    def is_echo(self, text, started):
        left = [word for at, word in self.played if at >= started - ECHO_WINDOW]
        words, repeated = fold(text), 0
        for word in words:
            if word in left:
                left.remove(word)
                repeated += 1
        return bool(words) and 5 * repeated >= 4 * len(words)

    # Audio

    def on_sentence(self, e):
        self.sentences.append(Sentence(e["text"], e.get("words"), e["sentence"]))

    def sentence(self, e):
        """The sentence meant; None when it belongs to a stream that an extension has replaced."""
        return next((s for s in self.sentences if s.number == e["sentence"]), None)

    def on_audio(self, e):
        sentence = self.sentence(e)
        if sentence is None or sentence.dropped or sentence.whole or e["ms"] <= 0:
            return
        if any(s.audio for s in self.sentences[self.sentences.index(sentence) + 1 :]):
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
        if self.state == "preparing" and not self.audio_ready:
            if not (self.extend_pending and "I8b" in self.readings):
                self.fail("nothing_voiced")
            return
        self.finished = True
        for sentence in self.sentences:
            if not sentence.whole and not sentence.dropped:
                sentence.whole, sentence.dropped = sentence.audio > 0, sentence.audio == 0
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
        before = len(self.heard())
        self.pages[page] = max(self.pages.get(page, 0), position)
        self.played += [(self.now, word) for word in fold(self.heard()[before:])]
        if position != self.reported or "I16b" not in self.readings:
            self.reported, self.lost_from = position, self.now
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
        position, text = self.position(), ""
        for sentence, offset in self.placed():
            here = min(position - offset, sentence.audio)
            if here > 0:
                text += sentence.text[: max((b for _a, b, _s, e in sentence.word_times() if e <= here), default=0)]
        return text

    def resume_from(self):
        position = self.position()
        kept = [(s, offset) for s, offset in self.placed() if s.audio and offset < position][-2:]
        starts = [o + start for s, o in kept for _a, _b, start, _e in s.word_times() if start < s.audio]
        starts = [start for start in starts if start <= position - REWIND]
        return max(starts) if starts else kept[-1][1] if kept else 0

    # Transitions

    def speak(self):
        self.first_frame = self.lost_from = self.now
        self.forget()
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
        self.forget()
        self.emit("unduck")
        self.enter("speaking")

    def resume(self, verdict):
        self.record(verdict)
        start = self.resume_from()
        self.over = None
        self.forget()
        self.lost_from = self.now
        if self.finished and self.position() >= self.sent():
            self.done()
            return
        self.emit("resume", from_ms=start // MS)
        self.enter("speaking")

    def cut(self, reason):
        self.record("cut")
        heard = self.heard()
        self.emit("cut", reason=reason, heard=heard, ms=self.position() // MS)
        self.enter("cut")

    def playback_lost(self):
        if self.heard().strip():
            self.cut("playback_lost")
        else:
            self.record("cut")
            self.emit("post_as_text")
            self.enter("done")

    def cancel(self, reason):
        self.record("cancelled")
        self.emit("cancelled", reason=reason)
        self.enter("cancelled")

    def done(self):
        self.record("done")
        self.emit("done", heard=self.heard())
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
                yield self.quiet_since(0) + SILENCE, 0, self.unduck
            if self.sent() > self.position():
                yield self.lost_from + PLAYBACK_LOST, 1, self.playback_lost
            elif "I18b" in self.readings:
                yield self.lost_from + self.main_timeout + TIMEOUT_MARGIN, 1, self.done
        elif self.state == "yielded":
            yield max(self.finals_by(), self.quiet_since(self.over.paused_at) + VERDICT_SILENCE), 0, self.verdict
            yield self.over.paused_at + VERDICT_LIMIT, 1, self.limit

    def deadlines_preparing(self):
        if self.hold_since is not None:
            yield max(self.finals_by(), self.quiet_since(0) + SILENCE), 0, self.release
            yield self.hold_since + HOLD_LIMIT, 1, self.talked_over
        elif self.extend_pending:
            yield self.now, 0, self.release
        if not self.audio_ready and not self.finished:
            yield self.timeout_from + self.main_timeout + TIMEOUT_MARGIN, 2, lambda: self.fail("timeout")

    def finals_by(self):
        """When nobody's final is waited for any more."""
        return max((p.final_by() for p in self.voices() if p.awaiting), default=0)

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
        self.forget()

    def talked_over(self):
        if self.text_channel:
            self.emit("post_as_text")
            self.enter("done")
        else:
            self.fail("talked_over")

    def verdict(self):
        partials = [p.partial for p in self.people.values() if p.partial]
        spoken = self.spoken()
        if any(self.is_stop(t) for t in partials):
            self.cut("stop_word")
        elif "I13b" not in self.readings and any(self.words.addressed(t) for t in partials):
            self.cut("address")
        elif all(self.words.is_backchannel(t) for t in spoken):
            self.resume("backchannel" if spoken else "nothing")
        elif max(sum(high - low for low, high in p.hops) for p in self.people.values()) < LONG_TALK:
            self.resume("short")
        else:
            self.cut("talk")

    def spoken(self):
        """What people said in this interruption, with the newest partial where a final is missing."""
        return [t for p in self.people.values() for t in [*p.finals, p.partial] if t]

    def limit(self):
        """5 s have passed since the pause."""
        if any(not ("I11b" in self.readings and self.words.is_backchannel(t)) for t in self.spoken()):
            self.cut("limit")
            return
        for user, p in sorted(self.people.items()):
            if p.talking:
                p.noise = True
                self.emit("noise", user=user)
        self.resume("noise")
