"""Tests for rules 2.1 to 2.9."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from second import check, run, script  # noqa: E402
from test_interruption import at, us  # noqa: E402


def talk(user, low, high, text=None, delay=0.5, **more):
    """Talk with a final `delay` after the last voiced hop."""
    events = [
        at(low, "voiced", user=user) | {"from": us(low), "to": us(high)},
        at(low + 0.048, "started", user=user),
        at(high + 0.3, "ended", user=user, ended=high),
    ]
    if text is not None:
        events.append(at(high + delay, "final", user=user, text=text, started=low, ended=high, **more))
    return events


def companion(name="arya", lull=5, moment=0, names=()):
    return at(moment, "companion_joined", companion=name, names=list(names), lull_us=us(lull))


class Case(unittest.TestCase):
    def go(self, *events, users=("ana", "ben"), **config):
        flat = [at(0, "joined", user=u) for u in users]
        for e in events:
            flat += e if isinstance(e, list) else [e]
        head = {"at": 0, "input": "config", "machine": "handover", **config}
        self.machine = run([head, *sorted(flat, key=lambda e: e["at"])])
        check([head, *flat], self.machine)
        return self.machine.effects

    def of(self, effects, name, **fields):
        return [e for e in effects if e["effect"] == name and fields.items() <= e.items()]

    def handed(self, effects):
        return [(e["at"] / 1e6, e["cause"], [(m["user"], m["text"]) for m in e["messages"]]) for e in self.of(effects, "hand_over")]


class Lull(Case):
    def test_the_final_restarts_the_timer(self):
        self.assertEqual(self.handed(self.go(talk("ana", 1, 2, "hello"))), [(7.5, "lull", [("ana", "hello")])])

    def test_noise_frames_and_utterance_end_do_not_count(self):
        noise = at(4, "voiced", user="ben") | {"from": us(4), "to": us(4.016)}
        e = self.go(talk("ana", 1, 2, "hello"), at(3, "utterance_end", user="ana"), noise)
        self.assertEqual(self.handed(e)[0][0], 7.5)

    def test_an_onset_stops_the_timer(self):
        e = self.go(talk("ana", 1, 2, "hello"), talk("ben", 7, 8, "hi"))
        self.assertEqual(self.handed(e), [(13.5, "lull", [("ana", "hello"), ("ben", "hi")])])

    def test_a_final_during_talk_does_not_start_it(self):
        e = self.go(talk("ana", 1, 2, "hello"), talk("ben", 1.5, 20, "hi"))
        self.assertEqual(self.handed(e)[0][0], 25.5)

    def test_thirty_seconds_without_a_word_are_noise(self):
        e = self.go(talk("ana", 1, 2, "hello"), talk("ben", 1.5, 90))
        self.assertEqual(self.of(e, "noise")[0]["at"], us(31.548))
        self.assertEqual(self.handed(e)[0][0], 36.548)

    def test_words_end_the_noise(self):
        e = self.go(talk("ana", 1, 2, "hello"), talk("ben", 1.5, 60, "hi"), at(33, "partial", user="ben", text="hi"))
        self.assertEqual(self.handed(e), [(65.5, "lull", [("ana", "hello"), ("ben", "hi")])])

    def test_the_lull_waits_for_an_outstanding_final(self):
        e = self.go(companion(lull=1), talk("ana", 1, 2, "hello", delay=1.5), voice_address_us=us(2))
        self.assertEqual(self.handed(e)[0][0], 3.5)

    def test_finalize_without_an_answer_is_waited_for_one_second(self):
        e = self.go(companion(lull=1), talk("ana", 1, 2, "a", delay=0.1), voice_address_us=us(2))
        # Offset 2.3, idle 0.5, wait 1.0: the final at 2.1 came before the offset.
        self.assertEqual(self.handed(e)[0][0], 3.8)

    def test_without_a_detector_the_final_is_the_offset(self):
        final = at(3, "final", user="ana", text="hello", started=1, ended=2)
        e = self.go(at(1, "speech_started", user="ana"), final, detector=False)
        self.assertEqual(self.handed(e)[0][0], 8)

    def test_segments_are_cut_at_fifteen_seconds_without_partials(self):
        e = self.go(talk("ana", 1, 20, "long"), partials=False)
        self.assertEqual([x["at"] for x in self.of(e, "cut_segment")], [us(16.048)])


class Runs(Case):
    def test_a_segment_in_between_ends_a_run(self):
        one = [at(3, "final", user="ana", text=t, started=a, ended=b) for t, a, b in [("a", 1, 1.4), ("b", 1.4, 1.8), ("d", 2.2, 3)]]
        e = self.go(talk("ana", 1, 3), talk("ben", 2, 2.6, "c"), one)
        self.assertEqual(self.handed(e)[0][2], [("ana", "a b"), ("ben", "c"), ("ana", "d")])

    def test_a_greyed_segment_ends_no_run(self):
        one = [at(3, "final", user="ana", text=t, started=a, ended=b) for t, a, b in [("a", 1, 1.4), ("d", 2.2, 3)]]
        e = self.go(talk("ana", 1, 3), talk("ben", 2, 2.6, "c", no_speech_prob=0.7), one)
        self.assertEqual(self.handed(e)[0][2], [("ana", "a d")])
        self.assertTrue(self.of(e, "segment", greyed=True))

    def test_a_larger_timeout_waits_out_the_rest_and_an_onset_stops_that(self):
        both = [companion("arya", 5), companion("bo", 8)]
        e = self.go(both, talk("ana", 1, 2, "hello"))
        self.assertEqual(self.of(e, "hand_over")[0]["gates"], ["arya"])
        self.assertEqual([(x["at"], x["companion"]) for x in self.of(e, "gate")], [(us(10.5), "bo")])
        e = self.go(both, talk("ana", 1, 2, "hello"), talk("ben", 8, 9, "hi"))
        self.assertEqual([x["at"] for x in self.of(e, "gate")], [us(17.5)])

    def test_a_companion_that_joins_changes_the_deadline(self):
        e = self.go(talk("ana", 1, 2, "hello"), companion(lull=3, moment=4))
        self.assertEqual(self.handed(e)[0][0], 5.5)
        e = self.go(talk("ana", 1, 2, "hello"), companion(lull=3, moment=6))
        self.assertEqual(self.handed(e)[0][0], 6)

    def test_the_endpoint_acts_on_the_newest_message_that_is_not_backchannel(self):
        e = self.go(talk("ana", 1, 2, "hello"), talk("ben", 3, 4, "mhm"))
        self.assertEqual(self.of(e, "hand_over")[0]["endpoint"], {"for": "all", "message": 1})
        self.assertIsNone(self.of(self.go(talk("ben", 3, 4, "mhm")), "hand_over")[0]["endpoint"])

    def test_backchannel_during_a_reply_settles(self):
        reply = [at(1, "reply_started", companion="arya"), at(6, "reply_ended", companion="arya", author="ana", last_frame=us(6))]
        e = self.go(reply, talk("ben", 3, 4, "mhm"))
        self.assertTrue(self.of(e, "settled", reason="backchannel"))


class Early(Case):
    def test_an_address_hands_over_without_an_endpoint(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"))
        self.assertEqual(self.handed(e), [(3, "address", [("ana", "Arya, hello")])])
        self.assertIsNone(self.of(e, "hand_over")[0]["endpoint"])

    def test_an_outstanding_final_is_waited_for(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello", delay=1.2))
        self.assertEqual(self.handed(e)[0][:2], (3.2, "address"))
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello", delay=2.1))
        self.assertEqual(self.handed(e)[0][:2], (9.1, "lull"))

    def test_an_unanswered_finalize_is_not_waited_for_after_its_second(self):
        # The final comes before the offset at 2.3, where `Finalize` is sent; nothing comes after it.
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello", delay=0.1))
        self.assertEqual([x["at"] for x in self.of(e, "finalize")], [us(2.3)])
        self.assertEqual(self.handed(e)[0][:2], (3.3, "address"))

    def test_an_onset_of_the_speaker_cancels_it(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), talk("ana", 2.8, 4, "are you there"))
        self.assertEqual(self.handed(e), [(5, "address", [("ana", "Arya, hello are you there")])])

    def test_another_speaker_does_not_stop_it(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), talk("ben", 1.5, 9, "so"))
        self.assertEqual(self.handed(e)[0][:2], (3, "address"))

    def test_a_timeout_not_below_the_lull_turns_it_off(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), voice_address_us=us(5))
        self.assertEqual(self.handed(e)[0][:2], (7.5, "lull"))
        self.assertEqual(self.of(e, "finalize")[:1], [])

    def test_one_person_and_one_companion(self):
        e = self.go(companion(), talk("ana", 1, 2, "hello"), users=["ana"])
        self.assertEqual(self.handed(e)[0][:2], (3, "alone"))
        self.assertEqual(self.of(e, "hand_over")[0]["endpoint"], {"for": "arya", "message": 1})

    def test_a_follow_up_of_the_author_or_the_interrupter(self):
        for user, start, cause in [("ana", 13, "follow_up"), ("ana", 13.1, "lull"), ("ben", 5, "lull")]:
            ended = at(3, "reply_ended", companion="arya", author="ana", last_frame=us(3))
            e = self.go(companion(), ended, talk(user, start, start + 1, "hello"))
            self.assertEqual(self.handed(e)[0][1], cause)
        ended = at(3, "reply_ended", companion="arya", author="ana", interrupter="ben", last_frame=us(3))
        e = self.go(companion(), ended, talk("ben", 5, 6, "hello"))
        self.assertEqual(self.handed(e)[0][1], "follow_up")

    def test_at_one_moment_the_lull_wins(self):
        # The timer starts anew at the final (2.5) and runs 1.0 s; the early moment is 2 + 1.5.
        e = self.go(companion(lull=1.6), companion("bo", 1, 2.6), talk("ana", 1, 2, "Arya, hello"), voice_address_us=us(1.5))
        self.assertEqual(self.handed(e)[0][:2], (3.5, "lull"))


class Readings(Case):
    def test_the_waiting_lull_restarts(self):
        events = [companion(lull=1), *talk("ana", 1, 2, "hello", delay=1.5)]
        e = self.go(events, voice_address_us=us(2), readings=["H5a"])
        self.assertEqual(self.handed(e)[0][0], 4.5)

    def test_a_final_before_the_offset_ends_the_wait(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello", delay=0.1), readings=["H6b"])
        self.assertEqual(self.handed(e)[0][:2], (3, "address"))
        self.assertEqual(self.of(e, "finalize"), [])

    def test_an_empty_final_restarts_nothing(self):
        empty = at(4, "final", user="ana", text="", started=2, ended=2)
        self.assertEqual(self.handed(self.go(talk("ana", 1, 2, "hello"), empty))[0][0], 9)
        self.assertEqual(self.handed(self.go(talk("ana", 1, 2, "hello"), empty, readings=["H2b"]))[0][0], 7.5)

    def test_an_address_to_the_only_companion_carries_the_endpoint(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), users=["ana"], readings=["H11b"])
        self.assertEqual(self.handed(e)[0][1], "alone")

    def test_voice_quiet_waits_for_the_round(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), readings=["H31b"])
        self.assertEqual(self.of(e, "voice_quiet"), [])
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), at(7, "round_ended"), readings=["H31b"])
        self.assertEqual(len(self.of(e, "voice_quiet")), 1)

    def test_unknown_readings_are_refused(self):
        with self.assertRaisesRegex(ValueError, "unknown readings"):
            self.go(readings=["X1"])


class Quiet(Case):
    def test_voice_quiet_when_messages_are_left(self):
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"))
        self.assertEqual([(x["at"], x["messages"]) for x in self.of(e, "voice_quiet")], [(us(7.5), [1])])
        self.assertFalse(self.of(self.go(companion(), talk("ana", 1, 2, "Arya, hello"), at(4, "settled", messages=[1])), "voice_quiet"))

    def test_left_over_messages_wait_for_the_next_end(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(10, "round_ended"))
        self.assertEqual(self.of(e, "voice_quiet")[0]["at"], us(15))

    def test_when_the_call_ends_they_arm_the_timeout(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(10, "call_ended"))
        self.assertEqual(self.of(e, "arm")[0]["due"], us(15))

    def test_a_text_lull_waits_and_is_merged(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(1.5, "text_lull"))
        self.assertTrue(self.of(e, "hand_over")[0]["text_lull"])
        e = self.go(companion(), talk("ana", 1, 2, "Arya, hello"), at(1.5, "text_lull"))
        self.assertEqual([x["at"] for x in self.of(e, "text_lull")], [us(7.5)])
        self.assertFalse(self.of(e, "voice_quiet"))

    def test_typed_text_changes_nothing(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(6, "typed", user="ben", text="hi"))
        self.assertEqual(self.handed(e)[0][0], 7.5)


class Leaving(Case):
    def test_a_late_final_begins_a_new_buffer(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(9, "final", user="ana", text="late", started=1.5, ended=2))
        self.assertEqual(self.handed(e), [(7.5, "lull", [("ana", "hello")]), (14, "lull", [("ana", "late")])])

    def test_a_final_twice_counts_once(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(4, "final", user="ana", text="hello", started=1, ended=2))
        self.assertEqual(self.handed(e), [(7.5, "lull", [("ana", "hello")])])

    def test_mute_is_an_offset(self):
        e = self.go(at(1, "started", user="ana"), at(2, "muted", user="ana"), talk("ben", 1, 1.5, "hi"))
        self.assertEqual(self.of(e, "finalize", user="ana")[0]["at"], us(2))
        self.assertEqual(self.handed(e)[0][0], 7)

    def test_the_last_person_gone(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(2.6, "left", user="ana"), users=["ana"])
        self.assertEqual(self.handed(e)[0][:2], (2.6, "gone"))
        e = self.go(talk("ana", 1, 3, "late", delay=3), at(2, "left", user="ana"), users=["ana"])
        self.assertEqual(self.handed(e)[0][:2], (6, "gone"))

    def test_a_lost_socket_is_gone_after_ten_seconds(self):
        lost = at(2.6, "socket_lost", user="ben")
        e = self.go(companion(), lost, talk("ana", 12.7, 13, "hello"))
        self.assertEqual(self.handed(e)[0][1], "alone")
        e = self.go(companion(), lost, at(12, "socket_back", user="ben"), talk("ana", 12.7, 13, "hello"))
        self.assertEqual(self.handed(e)[0][1], "lull")

    def test_opting_out_redacts_and_drops(self):
        e = self.go(talk("ana", 1, 2, "hello"), at(4, "opt_out", user="ana"), talk("ana", 5, 6, "secret"))
        self.assertEqual(self.handed(e), [])
        self.assertEqual(self.of(e, "redact")[0]["segments"], [1])
        self.assertEqual(len(self.of(e, "segment")), 1)

    def test_restart_keeps_the_buffer(self):
        e = self.go(companion(), talk("ana", 1, 2, "hello"), at(4, "restart", connected=["ana", "ben"]))
        self.assertEqual(self.handed(e), [(9, "lull", [("ana", "hello")])])


class Soak(unittest.TestCase):
    def test_random_scripts_keep_the_invariants(self):
        for name in ("handover", "interruption"):
            for seed in range(60):
                with self.subTest(machine=name, seed=seed):
                    events = script(seed, name)
                    check(events, run(events))


if __name__ == "__main__":
    unittest.main()
