"""One test or more for each row of the table of section 4. Run: python3 -m unittest discover -s tests/second"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from second import run  # noqa: E402

TEN = "one two three four five six seven eight nine ten"


def us(seconds):
    return round(seconds * 1_000_000)


def at(moment, name, **fields):
    for key in ("started", "ended"):
        if key in fields:
            fields[key] = us(fields[key])
    return {"at": us(moment), "input": name, **fields}


def talk(user, low, high, draw=1.0, offset=True):
    """Detected after three hops; the offset comes 0.3 s after the last voiced hop."""
    events = [
        at(low, "voiced", user=user) | {"from": us(low), "to": us(high)},
        at(low + 0.048, "started", user=user, draw=draw),
    ]
    return events + ([at(high + 0.3, "ended", user=user, ended=high)] if offset else [])


def word(moment, user, text, started, final=True, **more):
    return at(moment, "words", user=user, text=text, is_final=final, started=started, **more)


def playback(first, until, position=0.0):
    """Played positions every 0.1 s from `first` to `until`, beginning at `position`."""
    count = round((until - first) * 10)
    return [at(first + i / 10, "played", ms=round(position * 1000) + i * 100) for i in range(1, count + 1)]


def speaking(first=0.0, length=20.0, text=None):
    """A reply of one sentence whose words last `length / 10` seconds each."""
    each = round(length * 100)
    times = [[i * each, (i + 1) * each] for i in range(10)]
    return [
        at(first, "sentence", sentence=0, text=text or TEN, words=times if text is None else None),
        at(first, "audio", sentence=0, ms=round(length * 1000)),
        at(first, "whole", sentence=0),
        at(first, "first_audio"),
    ]


class Case(unittest.TestCase):
    config = {}

    def go(self, *events, **config):
        flat = []
        for e in events:
            flat += e if isinstance(e, list) else [e]
        head = {
            "at": 0,
            "input": "config",
            "machine": "interruption",
            "companion": "arya",
            "companions": {"arya": [], "bo": []},
            "tier": "average",
            **config,
        }
        return run([head, *sorted(flat, key=lambda e: e["at"])]).effects

    def moment(self, effects, name, index=0):
        found = [e for e in effects if e["effect"] == name]
        self.assertGreater(len(found), index, f"no {name} in {effects}")
        return found[index]["at"] / 1e6

    def has(self, effects, name, **fields):
        self.assertTrue(self.find(effects, name, **fields), f"no {name} {fields} in {effects}")

    def hasnt(self, effects, name, **fields):
        self.assertFalse(self.find(effects, name, **fields), effects)

    def find(self, effects, name, **fields):
        return [e for e in effects if e["effect"] == name and fields.items() <= e.items()]


class Preparing(Case):
    def test_a_talker_holds_the_audio_until_silence_and_final(self):
        e = self.go(talk("ana", 0.5, 2), at(1, "first_audio"), word(2.4, "ana", "", 0.5))
        self.assertEqual(self.moment(e, "hold"), 0.548)
        self.assertEqual(self.moment(e, "go_on"), 2.4)
        self.assertEqual(self.moment(e, "speak"), 2.4)

    def test_a_final_that_never_comes_is_waited_for_one_second(self):
        e = self.go(talk("ana", 0.5, 2), at(1, "first_audio"))
        self.assertEqual(self.moment(e, "go_on"), 3.3)

    def test_who_talks_at_the_floor_counts_as_started(self):
        e = self.go(at(0, "first_audio"), at(0.3, "ended", user="ana"), talking=["ana"])
        self.assertEqual(self.moment(e, "hold"), 0)
        self.assertEqual(self.moment(e, "speak"), 1.3)

    def test_after_twenty_seconds_of_talk_the_reply_is_posted_as_text(self):
        e = self.go(talk("ana", 0.5, 40), at(1, "first_audio"))
        self.assertEqual(self.moment(e, "post_as_text"), 20.548)
        e = self.go(talk("ana", 0.5, 40), at(1, "first_audio"), text_channel=False)
        self.has(e, "failed", reason="talked_over")

    def test_final_words_extend_once_when_the_hold_ends(self):
        e = self.go(talk("ana", 0.5, 2), word(2.2, "ana", "and the roses", 0.5), word(2.5, "ana", "too", 2), at(2.6, "first_audio"), word(3, "ana", "really", 2.8))
        self.assertEqual(len(self.find(e, "extend")), 1)
        self.assertEqual(self.moment(e, "extend"), 2.5)
        self.assertEqual(self.moment(e, "speak"), 2.6)

    def test_a_final_without_a_hold_extends_at_once(self):
        self.assertEqual(self.moment(self.go(word(1, "ana", "one more thing", 0)), "extend"), 1)

    def test_backchannel_alone_does_not_extend(self):
        self.hasnt(self.go(talk("ana", 0.5, 1), word(1.5, "ana", "Mhm, yeah.", 0.5)), "extend")

    def test_a_partial_cancels_only_with_a_stop_word_alone_or_addressed_to_it(self):
        for text, cancels in [("Wait!", True), ("Arya, stop it", True), ("stop it now", False), ("Bo, stop it", False), ("hello", False)]:
            e = self.go(talk("ana", 0.5, 2), word(1.5, "ana", text, 0.5, final=False))
            self.assertEqual(bool(self.find(e, "cancelled")), cancels, text)

    def test_first_audio_speaks_and_nothing_voiced_fails(self):
        self.assertEqual(self.moment(self.go(at(1, "first_audio")), "speak"), 1)
        self.has(self.go(at(1, "finished")), "failed", reason="nothing_voiced")

    def test_without_audio_the_reply_fails_in_time_and_anew_after_an_extension(self):
        self.assertEqual(self.moment(self.go(main_timeout_us=us(10)), "failed"), 15)
        e = self.go(word(4, "ana", "one more thing", 3), main_timeout_us=us(10))
        self.assertEqual(self.moment(e, "failed"), 19)


class Speaking(Case):
    def test_started_ducks_at_once_and_draws(self):
        e = self.go(speaking(), talk("ana", 1, 1.2, draw=0.1))
        self.assertEqual(self.moment(e, "duck"), 1.048)
        self.has(e, "duck", tolerant=True)

    def test_words_from_before_the_first_frame_are_ignored(self):
        e = self.go(speaking(2), word(2.5, "ana", "Arya, stop", 1.9))
        self.hasnt(e, "cut", reason="stop_word")
        self.has(self.go(speaking(2), word(2.5, "ana", "Arya, stop", 2.0)), "cut", reason="stop_word")

    def test_a_stop_word_or_an_address_in_a_final_cuts(self):
        for text, reason in [("hold on please", "stop_word"), ("what does Bo say", "address"), ("no no", "stop_word")]:
            e = self.go(speaking(), playback(0, 1.1), word(1.1, "ana", text, 0.5))
            self.has(e, "cut", reason=reason)
        self.hasnt(self.go(speaking(), word(1.1, "ana", "please stop", 0.5)), "cut", reason="stop_word")

    def test_a_stop_word_in_a_partial_pauses_and_cuts_when_no_final_revises_it(self):
        e = self.go(speaking(), talk("ana", 1, 1.4), word(1.3, "ana", "wait", 1, final=False))
        self.assertEqual(self.moment(e, "pause"), 1.3)
        self.assertEqual(self.moment(e, "cut"), 2.7)
        e = self.go(speaking(), talk("ana", 1, 1.4), word(1.3, "ana", "wait", 1, final=False), word(1.8, "ana", "weighty matters", 1))
        self.has(e, "resume")
        self.assertEqual(self.moment(e, "resume"), 2.2)

    def test_played_to_its_end_is_done_and_all_is_heard(self):
        e = self.go(speaking(length=2), at(1, "finished"), playback(0, 2))
        self.has(e, "done", heard=TEN)
        self.assertEqual(self.moment(e, "done"), 2)

    def test_a_stall_drops_the_sentence(self):
        e = self.go(at(0, "sentence", sentence=0, text="One two."), at(0, "first_audio"), at(2, "stall"))
        self.has(e, "next_sentence", dropped=0)

    def test_nothing_played_for_five_seconds_is_lost_playback(self):
        e = self.go(speaking(), playback(0, 1))
        self.has(e, "cut", reason="playback_lost")
        self.assertEqual(self.moment(e, "cut"), 6)

    def test_greyed_words_count_only_as_a_stop_word(self):
        self.hasnt(self.go(speaking(), word(1.1, "ana", "Arya", 0.5, greyed=True)), "cut", reason="address")
        self.has(self.go(speaking(), word(1.1, "ana", "stop", 0.5, greyed=True)), "cut", reason="stop_word")


class Ducked(Case):
    def test_silence_unducks(self):
        e = self.go(speaking(), talk("ana", 1, 1.2))
        self.assertEqual(self.moment(e, "unduck"), 1.5)

    def test_half_a_second_of_voice_pauses(self):
        # The hop in which the sum reaches 0.5 s ends at 32 * 16 ms.
        self.assertEqual(self.moment(self.go(speaking(), talk("ana", 1, 3)), "pause"), 1.512)

    def test_tolerance_waits_for_two_seconds(self):
        self.assertEqual(self.moment(self.go(speaking(), talk("ana", 1, 4, draw=0.29)), "pause"), 3)
        self.assertEqual(self.moment(self.go(speaking(), talk("ana", 1, 4, draw=0.3)), "pause"), 1.512)

    def bursts(self, voiced, count, draw):
        """Stretches of voice every 0.4 s, so that no silence reaches 0.3 s."""
        events = [e for i in range(count) for e in talk("ana", 1 + i * 0.4, 1 + i * 0.4 + voiced, draw, offset=False)]
        return self.go(speaking(), playback(0, 9), events, at(9, "ended", user="ana"))

    def test_voice_must_fall_into_the_window(self):
        # Three times 0.144 s within any second; eight times 0.24 s within any three.
        self.hasnt(self.bursts(0.144, 12, draw=1), "pause")
        self.has(self.bursts(0.24, 12, draw=1), "pause")
        self.hasnt(self.bursts(0.24, 16, draw=0), "pause")
        self.has(self.bursts(0.272, 16, draw=0), "pause")

    def test_two_talkers_are_not_added_up(self):
        self.hasnt(self.go(speaking(), talk("ana", 1, 1.4), talk("ben", 1.3, 1.7)), "pause")

    def test_noise_is_not_talking_here(self):
        e = self.go(speaking(), talk("ana", 1, 3, draw=0), at(1.5, "noise", user="ana"), at(2, "noise", user="ana", on=False))
        self.assertEqual(self.moment(e, "unduck"), 1.5)
        self.assertEqual(self.moment(e, "duck", 1), 2)

    def test_a_name_in_a_partial_pauses_at_once(self):
        e = self.go(speaking(), talk("ana", 1, 1.4), word(1.2, "ana", "well Bo", 1, final=False))
        self.assertEqual(self.moment(e, "pause"), 1.2)

    def test_probability_is_clamped(self):
        for config, tolerant in [
            ({"tier": "very_eager", "mood": 0.2, "unsolicited": True}, [0.89]),
            ({"tier": "very_quiet", "mood": -0.2}, []),
            ({"tier": "quiet"}, [0.19]),
            ({"unsolicited": True}, [0.64]),
        ]:
            for draw in (0.0, 0.19, 0.2, 0.64, 0.65, 0.89, 0.9):
                e = self.go(speaking(), talk("ana", 1, 1.2, draw=draw), **config)
                limit = max(tolerant, default=-1)
                self.has(e, "duck", tolerant=draw <= limit)


class Yielded(Case):
    def pause(self, end=2.0, **more):
        return [*speaking(), *playback(0, 1.5), *talk("ana", 1, end, **more)]

    def test_backchannel_resumes_after_silence_and_final(self):
        e = self.go(self.pause(), word(2.4, "ana", "mhm", 1))
        self.assertEqual(self.moment(e, "resume"), 2.8)
        self.has(e, "interrupted", verdict="backchannel")

    def test_a_late_final_is_waited_for_one_second(self):
        self.assertEqual(self.moment(self.go(self.pause()), "resume"), 3.3)

    def test_short_talk_resumes_and_long_talk_cuts(self):
        e = self.go(self.pause(), word(2.4, "ana", "a nice day", 1))
        self.has(e, "interrupted", verdict="short")
        e = self.go(self.pause(end=5.1), word(5.4, "ana", "a nice day", 1))
        self.has(e, "cut", reason="talk")
        self.assertEqual(self.moment(e, "cut"), 5.9)

    def test_without_a_final_the_newest_partial_counts(self):
        e = self.go(self.pause(), word(1.8, "ana", "a nice", 1, final=False))
        self.has(e, "interrupted", verdict="short")
        self.assertEqual(self.moment(e, "resume"), 3.3)

    def test_started_stops_the_silence(self):
        e = self.go(self.pause(), word(2.3, "ana", "a nice day", 1), talk("ben", 2.6, 2.8), word(3.2, "ben", "", 2.6))
        self.assertEqual(self.moment(e, "resume"), 3.6)

    def test_an_address_in_a_final_cuts_at_once(self):
        e = self.go(self.pause(), word(2.4, "ana", "and Bo", 1))
        self.assertEqual(self.moment(e, "cut"), 2.4)

    def test_five_seconds_with_words_cut_while_somebody_talks(self):
        e = self.go(self.pause(end=12), word(3, "ana", "so", 1, final=False))
        self.assertEqual(self.moment(e, "cut"), 6.512)
        self.has(e, "cut", reason="limit")

    def test_five_seconds_without_words_resume_and_the_talker_is_noise(self):
        e = self.go(self.pause(end=12))
        self.assertEqual(self.moment(e, "resume"), 6.512)
        self.assertEqual(len(self.find(e, "pause")), 1)
        self.has(e, "noise", user="ana")

    def test_late_played_raises_the_position(self):
        e = self.go(speaking(), playback(0, 1.5), talk("ana", 1, 2), at(1.6, "played", ms=1900), at(2.1, "stop_pressed"))
        self.has(e, "cut", ms=1900)
        e = self.go(speaking(length=2), talk("ana", 1, 2), at(1.6, "played", ms=9000), at(2.1, "stop_pressed"))
        self.has(e, "cut", ms=2000)

    def test_a_resume_at_the_end_is_done(self):
        e = self.go(speaking(length=2), playback(0, 1.5), talk("ana", 1, 2), at(1.6, "played", ms=2000), at(1.7, "finished"))
        self.has(e, "done", heard=TEN)

    def test_resume_begins_at_the_word_before(self):
        # Words last 2 s; P = 2.2 s, less 0.3 s lies in the first word.
        e = self.go(speaking(), playback(0, 1.5), talk("ana", 1, 2), at(1.6, "played", ms=2200))
        self.has(e, "resume", from_ms=0)
        e = self.go(speaking(), playback(0, 1.5), talk("ana", 1, 2), at(1.6, "played", ms=2300))
        self.has(e, "resume", from_ms=2000)


class AnyState(Case):
    def test_stop_and_the_end_of_the_call_cut(self):
        for name in ("stop_pressed", "call_ended"):
            self.has(self.go(at(1, name)), "cut", heard="")
            self.has(self.go(speaking(), playback(0, 4.1), at(4.2, name)), "cut", heard="one two")

    def test_cancelled_cuts_only_what_was_heard(self):
        self.has(self.go(speaking(), playback(0, 1), at(1, "cancelled")), "cancelled")
        self.has(self.go(speaking(), playback(0, 4), at(4, "cancelled")), "cut", heard="one two")

    def test_a_typed_stop_phrase_is_a_stop(self):
        self.has(self.go(speaking(), at(1, "typed", user="ana", text="Stop!")), "cut", reason="stop_pressed")
        self.hasnt(self.go(speaking(), at(1, "typed", user="ana", text="stop it")), "cut", reason="stop_pressed")

    def test_a_person_gone_counts_as_ended(self):
        e = self.go(talk("ana", 0.5, 9, offset=False), at(1, "first_audio"), at(2, "person_gone", user="ana"))
        self.assertEqual(self.moment(e, "speak"), 3)

    def test_ends_ignore_everything(self):
        e = self.go(at(1, "stop_pressed"), at(2, "first_audio"), at(3, "call_ended"))
        self.assertEqual(len(self.find(e, "cut")), 1)
        self.hasnt(e, "speak")


class Readings(Case):
    def test_unduck_waits_for_the_offset(self):
        events = [*speaking(), *talk("ana", 1, 1.2, offset=False), at(1.8, "ended", user="ana", ended=1.2)]
        self.assertEqual(self.moment(self.go(events), "unduck"), 1.5)
        self.assertEqual(self.moment(self.go(events, readings=["I1c"]), "unduck"), 1.8)

    def test_backchannel_is_no_word_for_the_limit(self):
        events = [*speaking(), *playback(0, 1.5), *talk("ana", 1, 12), word(3, "ana", "mhm", 1, final=False)]
        self.has(self.go(events), "cut", reason="limit")
        self.has(self.go(events, readings=["I11b"]), "interrupted", verdict="noise")

    def test_each_talker_has_his_own_draw(self):
        events = [*speaking(), *talk("ana", 1, 1.3, draw=0), *talk("ben", 1.2, 4, draw=1)]
        self.assertEqual(self.moment(self.go(events), "pause"), 3.2)
        self.assertEqual(self.moment(self.go(events, readings=["I2b"]), "pause"), 1.712)

    def test_stop_words_and_echo(self):
        events = [*speaking(length=5, text="wait for it until it comes"), *playback(0, 2.5), word(2.5, "ana", "wait", 1)]
        self.has(self.go(events), "echo")
        self.has(self.go(events, readings=["I22b"]), "cut", reason="stop_word")
        events = [*speaking(), word(1, "ana", "wait for me", 0.5)]
        self.has(self.go(events), "cut", reason="stop_word")
        self.hasnt(self.go(events, readings=["I23b"]), "cut", reason="stop_word")

    def test_stop_words_in_preparation(self):
        self.has(self.go(word(1, "ana", "stop", 0.5)), "cancelled")
        self.has(self.go(word(1, "ana", "stop", 0.5), readings=["I4a"]), "extend")
        self.hasnt(self.go(word(1, "ana", "stop", 0.5, final=False), readings=["I5c"]), "cancelled")

    def test_a_name_in_a_newest_partial(self):
        events = [*speaking(), *talk("ana", 1, 1.4), word(1.2, "ana", "well Bo", 1, final=False)]
        self.has(self.go(events), "cut", reason="address")
        self.has(self.go(events, readings=["I13b"]), "interrupted", verdict="short")


class Words(Case):
    def test_heard_in_proportion_to_the_characters(self):
        text = "aaaa bbbb cccc dddd"  # 19 characters in 1.9 s
        for ms, heard in [(399, ""), (400, "aaaa"), (899, "aaaa"), (900, "aaaa bbbb"), (1900, text)]:
            e = self.go(speaking(length=1.9, text=text), at(1, "played", ms=ms), at(1, "stop_pressed"))
            self.has(e, "cut", heard=heard)

    def test_heard_in_a_script_without_spaces(self):
        e = self.go(speaking(length=1, text="今日は静"), at(1, "played", ms=600), at(1, "stop_pressed"))
        self.has(e, "cut", heard="今日")

    def test_unknown_duration_is_fifteen_characters_a_second(self):
        sentence = [at(0, "sentence", sentence=0, text="x" * 14 + " " + "y" * 15), at(0, "audio", sentence=0, ms=1500), at(0, "first_audio")]
        for ms, heard in [(900, ""), (1000, "x" * 14)]:
            e = self.go(sentence, at(1, "played", ms=ms), at(1, "stop_pressed"))
            self.has(e, "cut", heard=heard)

    def test_echo_counts_as_no_words(self):
        said = "one two three four stop"
        e = self.go(speaking(length=5), playback(0, 2.5), word(2.5, "ana", "one two three four nine", 1))
        self.has(e, "echo")
        e = self.go(speaking(length=5), playback(0, 2.5), *[word(2.5, "ana", said, 1) for _ in range(3)])
        self.has(e, "advise_headphones")
        for moment, echo in [(7.4, True), (7.6, False)]:
            late = at(7, "played", ms=2500)
            e = self.go(speaking(length=5), playback(0, 2.5), late, word(moment, "ana", "five", 1))
            self.assertEqual(bool(self.find(e, "echo")), echo)
        e = self.go(speaking(length=5), playback(0, 2.5), word(2.5, "ana", "one two Arya", 1))
        self.has(e, "cut", reason="address")


if __name__ == "__main__":
    unittest.main()
