use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::domain::service::Service;
use crate::ports::language_model::TokenUsage;
use crate::samples::at;
use crate::settings::samples::{models as defaults, named_model as named};

const ENDPOINT: &str = "http://here";

fn tight() -> models::Models {
    let mut settings = defaults();
    settings.side.max_concurrent = 1;
    settings.breaker.failures = 100;
    settings
}

fn entry(call: u64, asked: f64) -> Entry {
    Entry {
        call: CallId(call),
        role: ModelRole::Side,
        model: ModelRole::Side.into(),
        at: served_at(ENDPOINT),
        guild: "home".into(),
        priority: Priority::Lull,
        asked: at(asked),
        deadline: at(asked + 15.0),
    }
}

/// A schedule that was asked so many questions at the beginning.
fn asked(settings: models::Models, questions: u64) -> Schedule {
    let mut schedule = Schedule::new(settings);
    for call in 1..=questions {
        schedule.ask(at(0.0), entry(call, 0.0));
    }
    schedule
}

fn served_at(endpoint: &str) -> ServiceEndpoint {
    ServiceEndpoint { service: Service::LanguageModel, endpoint: endpoint.into() }
}

fn answer() -> Answer {
    Answer::of_text("YES", TokenUsage::default())
}

fn overloaded(retry_after: Option<f64>) -> NoAnswer {
    NoAnswer::Overloaded { endpoint: ENDPOINT.into(), detail: "busy".into(), retry_after: retry_after.map(duration) }
}

fn refused() -> NoAnswer {
    NoAnswer::Refused { endpoint: ENDPOINT.into(), detail: "no such model".into() }
}

fn unreachable() -> NoAnswer {
    NoAnswer::Unreachable { endpoint: ENDPOINT.into(), detail: "gone".into() }
}

/// The steps as short words: `call 1`, `again 1`, `1 ok`, `1 timeout`, `alone`.
fn described(steps: &[Step]) -> Vec<String> {
    steps
        .iter()
        .map(|step| match step {
            Step::Call(call, false) => format!("call {}", call.0),
            Step::Call(call, true) => format!("again {}", call.0),
            Step::Answer { call, result, .. } => {
                format!("{} {}", call.0, result.as_ref().map_or_else(|no_answer| no_answer.code(), |_| "ok"))
            }
            Step::CircuitOpen(..) => "alone".to_owned(),
        })
        .collect()
}

#[test]
fn a_question_waits_until_a_call_ends() {
    let mut schedule = Schedule::new(tight());
    let first = schedule.ask(at(0.0), entry(1, 0.0));
    let second = schedule.ask(at(1.0), entry(2, 1.0));

    let after = schedule.ended(at(3.0), CallId(1), Ok(answer()), 0.0);

    assert_eq!(described(&first), ["call 1"]);
    assert_eq!(described(&second), [""; 0]);
    assert_eq!(described(&after), ["1 ok", "call 2"]);
}

#[test]
fn a_deadline_ends_waiting_and_running_questions_at_its_moment() {
    let mut schedule = asked(tight(), 2);

    let due = schedule.next_wakeup();
    let steps = schedule.wake(at(15.0));

    assert_eq!(due, Some(at(15.0)));
    assert_eq!(described(&steps), ["1 timeout", "2 timeout"]);
    assert_eq!(schedule.next_wakeup(), None);
}

#[test]
fn a_question_past_its_deadline_is_answered_without_a_call() {
    let mut schedule = Schedule::new(tight());

    let steps = schedule.ask(at(20.0), entry(1, 0.0));

    assert_eq!(described(&steps), ["1 timeout"]);
}

#[test]
fn a_late_end_of_an_answered_question_is_ignored() {
    let mut schedule = asked(tight(), 1);
    schedule.wake(at(15.0));

    let steps = schedule.ended(at(15.1), CallId(1), Ok(answer()), 0.0);

    assert!(steps.is_empty());
}

#[test]
fn a_temporary_failure_is_retried_after_pauses_that_double() {
    let mut schedule = asked(tight(), 1);

    schedule.ended(at(0.0), CallId(1), Err(unreachable()), 1.0);
    let first_pause = schedule.next_wakeup();
    let again = schedule.wake(at(0.5));
    schedule.ended(at(0.5), CallId(1), Err(unreachable()), 1.0);
    let second_pause = schedule.next_wakeup();

    assert_eq!(first_pause, Some(at(0.5)));
    assert_eq!(described(&again), ["again 1"]);
    assert_eq!(second_pause, Some(at(1.5)));
}

#[test]
fn other_questions_are_asked_during_a_pause() {
    let mut schedule = asked(tight(), 2);

    let steps = schedule.ended(at(1.0), CallId(1), Err(unreachable()), 0.0);

    assert_eq!(described(&steps), ["call 2"]);
}

#[test]
fn retry_after_is_honoured_within_the_deadline() {
    let mut schedule = asked(tight(), 1);

    schedule.ended(at(0.0), CallId(1), Err(overloaded(Some(7.0))), 0.0);
    let pause = schedule.next_wakeup();
    schedule.wake(at(7.0));
    let past_deadline = schedule.ended(at(7.0), CallId(1), Err(overloaded(Some(9.0))), 0.0);

    assert_eq!(pause, Some(at(7.0)));
    assert_eq!(described(&past_deadline), ["1 overloaded"], "the pause would end after the deadline");
}

#[test]
fn a_refusal_is_never_retried() {
    let mut schedule = asked(tight(), 1);

    let steps = schedule.ended(at(0.1), CallId(1), Err(refused()), 0.0);

    assert_eq!(described(&steps), ["1 refused"]);
}

#[test]
fn a_request_that_cannot_be_sent_says_nothing_about_its_endpoint() {
    let unsendable = || NoAnswer::Unsendable { endpoint: ENDPOINT.into(), detail: "a recording of another kind".into() };
    let opens = |between: NoAnswer| {
        let mut settings = tight();
        (settings.breaker.failures, settings.pool.max_attempts) = (2, 1);
        let mut schedule = Schedule::new(settings);
        let ends = [unreachable(), between, unreachable()];
        let steps = (1..).zip(ends).flat_map(|(call, end)| {
            schedule.ask(at(0.0), entry(call, 0.0));
            schedule.ended(at(0.0), CallId(call), Err(end), 0.0)
        });
        described(&steps.collect::<Vec<_>>())
    };

    assert_eq!(opens(unsendable()), ["1 unreachable", "2 refused", "alone", "3 unreachable"]);
    assert_eq!(opens(refused()), ["1 unreachable", "2 refused", "3 unreachable"], "a refusal is an answer");
}

#[test]
fn the_last_attempt_ends_with_its_own_error() {
    let mut settings = tight();
    settings.pool.max_attempts = 1;
    let mut schedule = asked(settings, 1);

    let steps = schedule.ended(at(0.1), CallId(1), Err(unreachable()), 0.0);

    assert_eq!(described(&steps), ["1 unreachable"]);
}

#[test]
fn a_model_that_is_being_loaded_is_asked_until_the_deadline_and_opens_no_breaker() {
    let mut settings = tight();
    (settings.pool.max_attempts, settings.breaker.failures) = (1, 1);
    let mut schedule = asked(settings, 1);
    let loading = || NoAnswer::Loading { endpoint: ENDPOINT.into(), detail: "Loading model".into() };

    let mut now = 0.0;
    let steps = loop {
        let steps = schedule.ended(at(now), CallId(1), Err(loading()), 0.0);
        if !steps.is_empty() {
            break steps;
        }
        now += 2.0;
        assert_eq!(described(&schedule.wake(at(now))), ["again 1"], "after {now} s");
    };

    assert_eq!(described(&steps), ["1 overloaded"]);
    assert!((now - 14.0).abs() < 0.1, "{now}");
}

#[test]
fn an_open_breaker_answers_all_waiting_and_all_new_questions() {
    let mut settings = tight();
    settings.breaker.failures = 1;
    let mut schedule = asked(settings, 2);

    let opened = schedule.ended(at(1.0), CallId(1), Err(unreachable()), 0.0);
    let refused = schedule.ask(at(2.0), entry(3, 2.0));

    assert_eq!(described(&opened), ["alone", "2 circuit_open", "1 unreachable"]);
    assert_eq!(described(&refused), ["3 circuit_open"]);
}

#[test]
fn after_the_cool_down_one_question_probes_and_the_others_wait_for_it() {
    let mut settings = defaults();
    settings.breaker.failures = 1;
    let mut schedule = asked(settings, 1);
    schedule.ended(at(0.0), CallId(1), Err(unreachable()), 0.0);

    let probe = schedule.ask(at(10.0), entry(2, 10.0));
    let waits = schedule.ask(at(10.5), entry(3, 10.5));
    let back = schedule.ended(at(11.0), CallId(2), Ok(answer()), 0.0);

    assert_eq!(described(&probe), ["call 2"]);
    assert!(waits.is_empty());
    assert_eq!(described(&back), ["2 ok", "call 3"]);
}

#[test]
fn a_named_model_at_the_same_endpoint_has_its_own_limits_and_shares_the_breaker() {
    let mut settings = tight();
    settings.breaker.failures = 1;
    settings.named.insert("fast".into(), named(2));
    let mut schedule = asked(settings, 2);
    let fast = |call| Entry { model: "fast".into(), ..entry(call, 0.0) };

    let beside =
        [fast(3), Entry { guild: "away".into(), ..fast(4) }, fast(5)].map(|entry| described(&schedule.ask(at(0.0), entry)));
    let failed = schedule.ended(at(1.0), CallId(1), Err(unreachable()), 0.0);

    assert_eq!(beside, [vec!["call 3"], vec!["call 4"], vec![]]);
    assert_eq!(described(&failed), ["alone", "5 circuit_open", "2 circuit_open", "1 unreachable"]);
}

#[test]
fn a_hanging_endpoint_does_not_delay_another() {
    let mut schedule = asked(tight(), 1);

    let steps = schedule.ask(at(0.0), Entry { at: served_at("http://there"), ..entry(2, 0.0) });

    assert_eq!(described(&steps), ["call 2"]);
}

#[test]
fn a_guild_cannot_use_all_places_of_a_lane() {
    let mut settings = defaults();
    settings.main.max_concurrent = 3;
    settings.main.guild_max_concurrent = Some(2);
    let mut schedule = Schedule::new(settings);
    let main = |call| Entry { role: ModelRole::Main, model: ModelRole::Main.into(), ..entry(call, 0.0) };

    let mut steps: Vec<Step> = (1..=3).flat_map(|call| schedule.ask(at(0.0), main(call))).collect();
    steps.extend(schedule.ask(at(0.0), Entry { guild: "other".into(), ..main(4) }));

    assert_eq!(described(&steps), ["call 1", "call 2", "call 4"]);
}

#[test]
fn a_guild_whose_calls_hang_gets_fewer_until_they_are_answered_again() {
    let mut schedule = Schedule::new(defaults());
    let mut calls = 0;
    let mut started = |schedule: &mut Schedule, secs: f64| {
        calls += 4;
        let asked = (calls - 3..=calls).flat_map(|call| schedule.ask(at(secs), entry(call, secs)));
        asked.filter(|step| matches!(step, Step::Call(..))).count()
    };

    let at_start = started(&mut schedule, 0.0);
    schedule.wake(at(15.0));
    let after_hanging = started(&mut schedule, 20.0);
    schedule.ended(at(21.0), CallId(5), Ok(answer()), 0.0);
    schedule.wake(at(40.0));
    let other = schedule.ask(at(40.0), Entry { guild: "other".into(), ..entry(100, 40.0) });

    assert_eq!((at_start, after_hanging), (4, 1));
    assert_eq!(described(&other), ["call 100"]);
}

#[test]
fn calls_that_hang_while_others_are_answered_do_not_open_the_breaker() {
    let mut settings = defaults();
    settings.breaker.failures = 2;
    let mut schedule = asked(settings, 2);
    let calm = |call, secs| Entry { guild: "calm".into(), ..entry(call, secs) };
    schedule.ask(at(13.0), calm(3, 13.0));
    schedule.ended(at(14.0), CallId(3), Ok(answer()), 0.0);

    let hung = schedule.wake(at(15.0));
    let next = schedule.ask(at(15.0), calm(4, 15.0));

    assert_eq!(
        (described(&hung), described(&next)),
        (vec!["1 timeout".to_owned(), "2 timeout".to_owned()], vec!["call 4".to_owned()])
    );
}

#[test]
fn twelve_calm_guilds_do_not_wait_for_a_guild_whose_calls_hang() {
    let Waits { p50, p99, failed } = beside_a_hanging_guild(defaults());

    println!("twelve calm guilds beside one that hangs wait: p50 {p50:?}, p99 {p99:?}; {failed} without an answer");
    assert_eq!(failed, 0);
    assert!(p99 < Duration::from_millis(500), "{p99:?}");
}

struct Waits {
    p50: Duration,
    p99: Duration,
    failed: usize,
}

/// The wait times of twelve calm guilds beside one hanging guild, in five minutes of virtual time. Each calm guild asks every four seconds, and
/// is answered after half a second. The hanging guild asks twice a second, urgently, and its calls only end by their timeout.
fn beside_a_hanging_guild(settings: models::Models) -> Waits {
    const LASTS: u64 = 300_000;
    let millis = |millis: u64| Moment::from_micros(millis * 1000);
    let hangs = duration(settings.side.first_token_timeout_secs).as_millis() as u64;
    let mut schedule = Schedule::new(settings);
    let mut entries: Vec<Entry> = Vec::new();
    // When each call ends, and how.
    let mut ends: BTreeMap<(u64, CallId), Result<Answer, NoAnswer>> = BTreeMap::new();
    let (mut waited, mut failed) = (Vec::new(), 0);
    for now in 0..LASTS {
        let mut steps = schedule.wake(millis(now));
        while let Some(((at, call), result)) = ends.pop_first() {
            if at > now {
                ends.insert((at, call), result);
                break;
            }
            steps.extend(schedule.ended(millis(now), call, result, 0.5));
        }
        let calm = (0..12)
            .filter(|guild| (now + guild * 333).is_multiple_of(4_000))
            .map(|guild| (format!("calm {guild}"), Priority::Turn));
        let hanging = now.is_multiple_of(500).then(|| ("hanging".to_owned(), Priority::DirectAddress));
        for (guild, priority) in calm.chain(hanging) {
            let secs = now as f64 / 1000.0;
            let asked = Entry { guild: guild.into(), priority, ..entry(entries.len() as u64, secs) };
            entries.push(asked.clone());
            steps.extend(schedule.ask(millis(now), asked));
        }
        for step in steps {
            match step {
                Step::Call(call, _) if entries[call.0 as usize].guild == "hanging".into() => {
                    let timed_out = NoAnswer::TimedOut { after: Duration::from_millis(hangs) };
                    ends.insert((now + hangs, call), Err(timed_out));
                }
                Step::Call(call, _) => drop(ends.insert((now + 500, call), Ok(answer()))),
                Step::Answer { call, result, stats } if entries[call.0 as usize].guild != "hanging".into() => {
                    failed += usize::from(result.is_err());
                    waited.push(stats.waited);
                }
                Step::Answer { .. } | Step::CircuitOpen(..) => {}
            }
        }
    }
    waited.sort_unstable();
    let quantile = |part: f64| waited[(waited.len() as f64 * part) as usize];
    Waits { p50: quantile(0.5), p99: quantile(0.99), failed }
}

#[test]
fn wait_time_and_call_time_are_reported_separately() {
    let mut schedule = asked(tight(), 2);
    schedule.ended(at(2.0), CallId(1), Ok(answer()), 0.0);

    let steps = schedule.ended(at(5.0), CallId(2), Ok(answer()), 0.0);

    let stats = CallStats { waited: duration(2.0), in_calls: duration(3.0), attempts: 1 };
    assert_eq!(steps, [Step::Answer { call: CallId(2), result: Ok(answer()), stats }]);
}

#[derive(Clone, Debug)]
enum Move {
    Ask { guild: u8, priority: Priority, endpoint: u8, secs: u8 },
    Cancel(u8),
    End { running: u8, how: u8 },
    Pass(u16),
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (0..3_u8, prop::sample::select(Priority::ALL.to_vec()), 0..2_u8, 0..20_u8)
            .prop_map(|(guild, priority, endpoint, secs)| Move::Ask { guild, priority, endpoint, secs }),
        1 => any::<u8>().prop_map(Move::Cancel),
        4 => (any::<u8>(), 0..6_u8).prop_map(|(running, how)| Move::End { running, how }),
        2 => (0..8000_u16).prop_map(Move::Pass),
    ]
}

/// The running calls and the answers that follow from a schedule's steps.
#[derive(Default)]
struct World {
    running: BTreeMap<CallId, String>,
    answers: BTreeMap<CallId, usize>,
}

impl World {
    fn apply(&mut self, steps: Vec<Step>, endpoints: &[String]) {
        for step in steps {
            match step {
                Step::Call(call, _) => assert!(self.running.insert(call, endpoints[call.0 as usize].clone()).is_none()),
                Step::Answer { call, .. } => {
                    self.running.remove(&call);
                    *self.answers.entry(call).or_default() += 1;
                }
                Step::CircuitOpen(..) => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn every_question_is_answered_exactly_once_and_no_limit_is_exceeded(moves in prop::collection::vec(any_move(), 1..120)) {
        let mut settings = defaults();
        settings.side.max_concurrent = 2;
        settings.side.guild_max_concurrent = Some(1);
        settings.pool.queue_capacity = 3;
        settings.breaker.failures = 3;
        let mut schedule = Schedule::new(settings);
        let (mut world, mut endpoints, mut millis) = (World::default(), Vec::new(), 0_u64);

        for step in moves {
            let now = Moment::from_micros(millis * 1000);
            let steps = match step {
                Move::Ask { guild, priority, endpoint, secs } => {
                    let call = endpoints.len() as u64;
                    endpoints.push(format!("http://{endpoint}"));
                    let deadline = now + Duration::from_secs(secs.into());
                    let at = served_at(&endpoints[call as usize]);
                    schedule.ask(now, Entry { guild: guild.to_string().into(), priority, at, asked: now, deadline, ..entry(call, 0.0) })
                }
                Move::Cancel(call) => schedule.cancel(now, CallId(call.into())),
                Move::End { running, how } => {
                    let Some(&call) = world.running.keys().nth(running as usize % world.running.len().max(1)) else { continue };
                    match how {
                        0 => { world.running.remove(&call); schedule.ended(now, call, Err(unreachable()), 0.3) }
                        1 => { world.running.remove(&call); schedule.ended(now, call, Err(overloaded(Some(1.0))), 0.9) }
                        2 => schedule.panicked(now, call),
                        3 => schedule.prompt_failed(now, call),
                        4 => schedule.not_needed(now, call),
                        _ => schedule.ended(now, call, Ok(answer()), 0.0),
                    }
                }
                Move::Pass(by) => {
                    millis += u64::from(by);
                    schedule.wake(Moment::from_micros(millis * 1000))
                }
            };
            world.apply(steps, &endpoints);
            for endpoint in ["http://0", "http://1"] {
                prop_assert!(world.running.values().filter(|running| *running == endpoint).count() <= 2);
            }
            let waiting: usize = schedule.lanes(Moment::ZERO).iter().map(|lane| lane.waiting).sum();
            prop_assert_eq!(waiting + world.running.len() + world.answers.len(), endpoints.len());
        }
        while let Some(due) = schedule.next_wakeup() {
            let steps = schedule.wake(due);
            world.apply(steps, &endpoints);
        }

        prop_assert_eq!(world.answers.len(), endpoints.len());
        prop_assert!(world.answers.values().all(|answers| *answers == 1));
        prop_assert!(world.running.is_empty());
        prop_assert!(schedule.lanes(Moment::ZERO).iter().all(|lane| lane.waiting == 0 && lane.running == 0));
    }
}
