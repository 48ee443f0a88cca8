use proptest::prelude::*;

use super::*;
use crate::closing::Stage;
use crate::message::{Message, Modality};
use crate::moment::Moment;
use crate::samples::person;
use crate::trigger::Trigger;

/// What becomes of one question: the calls, and what its last prompt showed if it was answered.
struct Asking {
    calls: u32,
    shown: Option<Vec<u64>>,
}

/// Asks about the messages from `new_from` to `upto`, while a filter refuses every prompt with one of these.
fn ask(filtered: &mut Filtered, refused: &[u64], first: u64, new_from: u64, upto: u64, summary: bool) -> Asking {
    let mut search = Search::new(Asked::Decision, "m at here".into());
    let mut calls = 0;
    loop {
        let mut input = input(first, new_from, upto, summary, filtered);
        search.leave_out(&mut input, &"aria".into(), Seq(new_from));
        calls += 1;
        let mut shown: Vec<u64> = input.recent.iter().chain(&input.buffer).map(|said| said.seq.0).collect();
        shown.extend(input.summary.map(|_| 0));
        let is_refused = shown.iter().any(|seq| refused.contains(seq));
        if is_refused && search.refused() {
            continue;
        }
        if let Some(finding) = search.finding(!is_refused).and_then(|finding| filtered.checked(finding)) {
            filtered.apply(&finding);
        }
        return Asking { calls, shown: (!is_refused).then_some(shown) };
    }
}

fn input(first: u64, new_from: u64, upto: u64, summary: bool, filtered: &Filtered) -> PromptInput {
    let said = |seq| Said::new(Seq(seq), Moment::ZERO, Message::new(person("ana"), "Hi.".into()).into());
    PromptInput {
        trigger: Trigger::Lull,
        stage: Stage::None,
        modality: Modality::Text,
        message_count: 1,
        minutes: 0,
        speaker: None,
        is_repetitive: false,
        summary: summary.then(|| "They talked.".into()),
        recent: (first..new_from).map(said).collect(),
        buffer: (new_from..=upto).map(said).collect(),
        filtered: filtered.clone(),
        about_risk: false,
    }
}

fn found(filtered: &Filtered) -> Vec<u64> {
    filtered.models.iter().flat_map(|of| &of.found).map(|seq| seq.0).collect()
}

#[test]
fn a_refused_question_stays_out_and_the_next_one_is_answered() {
    let mut filtered = Filtered::default();
    assert!(ask(&mut filtered, &[4], 1, 3, 3, false).shown.is_some());

    let refused = ask(&mut filtered, &[4], 1, 4, 4, false);
    let next = ask(&mut filtered, &[4], 1, 5, 5, false);

    assert_eq!((refused.shown, refused.calls), (None, 2), "the second call shows that nothing else is the cause");
    assert_eq!((next.shown, next.calls), (Some(vec![1, 2, 3, 5]), 1));
    assert_eq!(found(&filtered), [4]);
}

#[test]
fn of_several_new_messages_the_refused_one_is_found_by_halves() {
    let mut filtered = Filtered::default();

    let first = ask(&mut filtered, &[3], 1, 1, 8, false);
    let mut last = None;
    for upto in 9..=12 {
        last = ask(&mut filtered, &[3], 1, upto, upto, false).shown;
    }

    assert_eq!((first.shown, first.calls), (Some(vec![5, 6, 7, 8]), 2));
    assert_eq!(last, Some(vec![1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12]), "everything else is back");
    assert_eq!(found(&filtered), [3]);
}

#[test]
fn a_summary_that_is_refused_stays_out_until_there_is_another() {
    let mut filtered = Filtered::default();
    let first = ask(&mut filtered, &[0], 1, 4, 4, true);
    for upto in 5..=9 {
        ask(&mut filtered, &[0], 1, upto, upto, true);
    }

    assert_eq!((first.shown, first.calls), (Some(vec![4]), 2), "the question alone");
    assert_eq!((found(&filtered), ask(&mut filtered, &[0], 1, 9, 9, true).calls), (vec![0], 1));
    filtered.forget(&[Seq::NONE]);
    assert!(filtered.models.is_empty());
}

#[test]
fn an_edited_message_is_shown_again() {
    let mut filtered = Filtered::default();
    ask(&mut filtered, &[2], 1, 2, 2, false);

    filtered.forget(&[Seq(2)]);

    assert_eq!(ask(&mut filtered, &[], 1, 3, 3, false).shown, Some(vec![1, 2, 3]));
}

#[test]
fn each_kind_of_prompt_and_each_model_is_filtered_for_itself() {
    let mut filtered = Filtered::default();
    ask(&mut filtered, &[2], 1, 2, 2, false);
    let shown = |asked, model: &str| {
        let mut input = input(1, 3, 3, false, &filtered);
        Search::new(asked, model.into()).leave_out(&mut input, &"aria".into(), Seq(3));
        input.recent.len()
    };

    assert_eq!(shown(Asked::Decision, "m at here"), 1);
    assert_eq!((shown(Asked::Statement, "m at here"), shown(Asked::Decision, "other at here")), (2, 2));
}

#[test]
fn a_summary_leaves_out_what_decisions_of_the_same_model_leave_out() {
    let mut filtered = Filtered::default();
    ask(&mut filtered, &[2], 1, 2, 2, false);
    let mut messages = input(1, 4, 4, false, &filtered).recent;

    Search::new(Asked::Summary, "m at here".into()).leave_out_of_summary(&mut messages, &mut None, &filtered);

    assert_eq!(messages.iter().map(|said| said.seq.0).collect::<Vec<_>>(), [1, 3]);
}

proptest! {
    /// Whatever is refused: harmless questions are answered, with few calls, and in the end nothing but what is refused stays out.
    #[test]
    fn a_harmless_question_is_answered_and_only_what_is_refused_stays_out(
        talk in proptest::collection::vec((1..12_u64, proptest::collection::btree_set(0..12_u64, 0..3)), 1..8),
    ) {
        let mut filtered = Filtered::default();
        let (mut refused, mut upto) = (Vec::new(), 0);
        for (messages, bad) in talk {
            let new_from = upto + 1;
            upto += messages;
            refused.extend(bad.into_iter().map(|at| new_from + at).filter(|seq| *seq < upto));

            let asking = ask(&mut filtered, &refused, 1, new_from, upto, false);

            prop_assert!(asking.shown.is_some(), "the newest message is harmless");
            prop_assert!(asking.calls <= 1 + MOST_CALLS, "{} calls", asking.calls);
        }
        for _ in 0..200 {
            upto += 1;
            let asking = ask(&mut filtered, &refused, 1, upto, upto, false);
            prop_assert!(asking.shown.is_some());
        }
        let asking = ask(&mut filtered, &refused, 1, upto, upto, false);

        let harmless: Vec<u64> = (1..=upto).filter(|seq| !refused.contains(seq)).collect();
        prop_assert_eq!(asking.shown, Some(harmless));
        prop_assert_eq!(asking.calls, 1);
    }
}

#[test]
fn what_others_asked_is_answered_although_the_newest_message_is_refused() {
    let mut filtered = Filtered::default();

    let asking = ask(&mut filtered, &[6], 1, 5, 6, false);

    assert_eq!(asking.shown, Some(vec![1, 2, 3, 4, 5]));
    assert_eq!(found(&filtered), [6]);
}

#[test]
fn at_most_three_further_calls_look_for_the_refused_message() {
    for (refused, upto, calls, answered) in [
        (&[12, 20][..], 20, 4, None),
        (&[19, 18], 20, 4, Some(vec![20])),
        (&[12], 20, 2, Some((1..=10).chain(16..=20).collect())),
        (&[12], 12, 4, Some((1..=11).collect())),
        (&[11], 11, 2, None),
    ] {
        let mut filtered = Filtered::default();
        let asking = ask(&mut filtered, refused, 1, 11, upto, false);

        assert_eq!((asking.calls, asking.shown), (calls, answered), "{refused:?}");
        assert!(ask(&mut filtered, refused, 1, upto + 1, upto + 1, false).shown.is_some(), "the next question is answered");
    }
}

#[test]
fn a_message_that_is_refused_no_more_is_shown_again() {
    let mut filtered = Filtered::default();
    ask(&mut filtered, &[2], 1, 2, 2, false);
    assert_eq!(found(&filtered), [2]);

    // It is asked about once more, and the service has other settings by now.
    let asking = ask(&mut filtered, &[], 1, 2, 2, false);

    assert!(asking.shown.is_some());
    assert_eq!(found(&filtered), [0; 0]);
}

/// Everything from `first` to `last` is refused.
fn all(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

#[test]
fn after_three_questions_that_are_refused_in_every_way_no_message_is_the_cause() {
    let mut filtered = Filtered::default();
    let search = |filtered: &Filtered| {
        let mut search = Search::new(Asked::Decision, "m at here".into());
        search.leave_out(&mut input(1, 9, 9, false, filtered), &"aria".into(), Seq(9));
        search
    };
    for upto in 1..=2 {
        ask(&mut filtered, &all(1, 9), 1, upto, upto, false);
    }
    assert_eq!((found(&filtered), filtered.refuses_all(&search(&filtered))), (vec![1, 2], false));

    for upto in 3..=5 {
        ask(&mut filtered, &all(1, 9), 1, upto, upto, false);

        assert_eq!((found(&filtered), filtered.refuses_all(&search(&filtered))), (vec![], true), "{upto}");
    }

    let answered = ask(&mut filtered, &[], 1, 6, 6, false);
    assert_eq!((answered.shown, answered.calls), (Some(all(1, 6)), 1));
    assert!(!filtered.refuses_all(&search(&filtered)));
}

#[test]
fn three_refused_messages_are_found_once_another_one_is_answered() {
    let mut filtered = Filtered::default();
    for upto in 4..=6 {
        ask(&mut filtered, &[4, 5, 6], 1, upto, upto, false);
    }

    for upto in 7..=20 {
        assert!(ask(&mut filtered, &[4, 5, 6], 1, upto, upto, false).shown.is_some(), "{upto}");
    }

    assert_eq!(found(&filtered), [4, 5, 6]);
    assert_eq!(ask(&mut filtered, &[4, 5, 6], 1, 21, 21, false).calls, 1);
}

#[test]
fn an_answer_between_refused_questions_shows_that_the_messages_are_the_cause() {
    let mut filtered = Filtered::default();

    for upto in 1..=8 {
        ask(&mut filtered, &[1, 3, 5, 7], 1, upto, upto, false);
    }

    assert_eq!(found(&filtered), [1, 3, 5, 7]);
}

#[test]
fn a_finding_does_not_count_if_a_message_was_changed_during_the_search() {
    let mut filtered = Filtered::default();
    let mut search = Search::new(Asked::Decision, "m at here".into());
    search.leave_out(&mut input(1, 1, 1, false, &filtered), &"aria".into(), Seq(1));
    assert!(!search.refused());
    let finding = search.finding(false).expect("a finding");
    assert_eq!((finding.found, filtered.checked(finding.clone())), (Some(Seq(1)), Some(finding.clone())));

    filtered.forget(&[Seq(1)]);

    assert_eq!(filtered.checked(finding), None);
}
