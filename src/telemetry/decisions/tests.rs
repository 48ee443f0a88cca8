use opentelemetry::trace::{SpanId, Status};

use super::super::memory::{SpanMemory, attribute};
use super::super::trace::TurnTrace;
use super::super::turns::{self, TurnFacts};
use super::*;
use crate::domain::id::{ChannelId, GuildId};

#[test]
fn a_decision_is_a_span_with_all_its_attributes() {
    let world = World::default();

    let memory = recorded(&world.facts(YES));

    let [span] = &memory.named("decision.gate")[..] else { panic!("not one span") };
    let expected = [
        ("decision", "YES"),
        ("decision.trigger", "direct_address"),
        ("decision.reason", "model_yes"),
        ("decision.message_count", "9"),
        ("decision.check_count", "2"),
        ("decision.threshold", "12"),
        ("channel.id", "console:lobby"),
        ("guild.id", "home"),
        ("companion.id", "aria"),
        ("turn.id", "turn-1"),
    ];
    for (name, value) in expected {
        assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(span.status, Status::Unset);
}

#[test]
fn a_span_has_the_times_of_its_record() {
    let world = World::default();

    let memory = recorded(&world.facts(YES));

    let since_epoch = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).expect("after").as_micros();
    let span = &memory.spans()[0];
    assert_eq!((since_epoch(span.start_time), since_epoch(span.end_time)), (1_000_000, 1_500_000));
}

#[test]
fn a_decision_is_a_child_of_the_root_that_is_written_after_it() {
    let memory = SpanMemory::new();
    let recorder = memory.recorder(false);
    let world = World::default();

    record(&recorder, &world.facts(YES));
    turns::record(&recorder, &world.turn());

    let (decision, root) = (&memory.named("decision.gate")[0], &memory.named("conversation.turn")[0]);
    assert_eq!(decision.span_context.trace_id(), root.span_context.trace_id());
    assert_eq!(decision.parent_span_id, root.span_context.span_id());
    assert_eq!(root.parent_span_id, SpanId::INVALID);
    assert_ne!(decision.span_context.span_id(), root.span_context.span_id());
}

#[test]
fn a_turn_that_follows_another_is_linked_to_its_root() {
    let memory = SpanMemory::new();
    let world = World::default();
    let before = TurnTrace::new(77);

    turns::record(&memory.recorder(false), &TurnFacts { follows: Some(before), ..world.turn() });

    let root = &memory.spans()[0];
    assert_eq!(root.links.len(), 1);
    assert!(root.links[0].span_context.trace_id() == before.root().context(true).trace_id());
    assert_ne!(root.span_context.trace_id(), root.links[0].span_context.trace_id());
}

#[test]
fn an_evaluation_without_an_answer_is_an_error_and_no_decision() {
    let world = World::default();

    let memory = recorded(&world.facts(Answer::Missing { error_type: "timeout" }));

    let span = &memory.spans()[0];
    assert_eq!(span.status, Status::error("timeout"));
    assert_eq!((attribute(span, "decision"), attribute(span, "decision.reason")), (None, None));
    assert_eq!(attribute(span, "error.type").as_deref(), Some("timeout"));
}

#[test]
fn a_vote_is_recorded_with_whether_it_won() {
    let world = World::default();
    let vote = VoteFacts { state: "speak", importance: 7.5, selected: true, closing: "none", floor: Some("lost") };

    let memory = recorded(&DecisionFacts { vote: Some(vote), ..world.facts(YES) });

    let span = &memory.spans()[0];
    assert_eq!(attribute(span, "decision.floor").as_deref(), Some("lost"));
    assert_eq!(attribute(span, "decision.importance").as_deref(), Some("7.5"));
    assert_eq!(attribute(span, "decision.selected").as_deref(), Some("true"));
}

#[test]
fn a_silent_recorder_writes_nothing() {
    assert_eq!(record(&Recorder::silent(), &World::default().facts(YES)), None);
}

const YES: Answer<'static> = Answer::Decided { decision: "YES", reason: "model_yes" };

struct World {
    guild: GuildId,
    channel: ChannelId,
    companion: CompanionId,
}

impl Default for World {
    fn default() -> Self {
        Self { guild: "home".into(), channel: "console:lobby".into(), companion: "aria".into() }
    }
}

fn recorded(facts: &DecisionFacts<'_>) -> SpanMemory {
    let memory = SpanMemory::new();
    record(&memory.recorder(false), facts);
    memory
}

impl World {
    fn in_turn(&self) -> InTurn<'_> {
        let (trace, turn_id) = (TurnTrace::new(0xabcdef), "turn-1".to_owned());
        InTurn { trace, turn_id, guild: &self.guild, channel: &self.channel }
    }

    fn facts<'a>(&'a self, answer: Answer<'a>) -> DecisionFacts<'a> {
        DecisionFacts {
            turn: self.in_turn(),
            ticket: Some(Ticket(1)),
            companion: &self.companion,
            trigger: Trigger::DirectAddress,
            answer,
            message_count: 9,
            check_count: 2,
            threshold: Some(12),
            vote: None,
            started: Moment::from_micros(1_000_000),
            ended: Moment::from_micros(1_500_000),
        }
    }

    fn turn(&self) -> TurnFacts<'_> {
        TurnFacts {
            turn: self.in_turn(),
            trigger: Trigger::DirectAddress,
            outcome: "posted",
            error_type: None,
            follows: None,
            awaited_since: Moment::from_micros(900_000),
            overhead: std::time::Duration::from_millis(1),
            heard_since: None,
            started: Moment::from_micros(900_000),
            ended: Moment::from_micros(2_000_000),
        }
    }
}
