//! A channel with its journal, driven by random acts. Every step asserts the properties that must always hold.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::super::super::event::{RoundClosed, order_of_handling, split_handled};
use super::super::super::message::{Address, Message, Modality, Role};
use super::super::super::voice::utterance;
use super::super::check_bids::check_bids;
use super::super::*;
use super::mouth::Mouth;
use super::witness::Witness;
use crate::samples::Policies;
use crate::samples::{self, author};

/// The next turn id, so that no two turns share one.
static TURNS: AtomicU64 = AtomicU64::new(1);

/// A possible next act. A number selects the companion or the message.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Say {
        to: Option<u8>,
        elsewhere: bool,
        voice: bool,
        bot: bool,
        late: Option<Duration>,
        stop: bool,
    },
    CatchUp,
    /// An event that must be acknowledged.
    Event {
        to: Option<u8>,
    },
    Wait(u64),
    /// Time passes without a wake-up.
    Stall(u64),
    /// Time passes, and then another process continues from the journal.
    Restart(u64),
    Answer {
        index: u8,
        verdict: Verdict,
        importance: u8,
        selected: bool,
        closing: Stage,
    },
    Error(u8),
    Write(u8),
    FailReply(u8),
    Judge(u8),
    LateAnswer,
    Edit(u8),
    Delete(u8),
    Pause {
        target: Option<u8>,
        paused: bool,
    },
    Clear,
    ReplaceModels,
    Leave(u8),
    Join(u8),
}

/// The companions of a channel, and the settings.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) companions: usize,
    pub(super) judge: &'static str,
    pub(super) max_turns: Option<u32>,
    pub(super) streak: u32,
    pub(super) equal_timeouts: bool,
    /// Whether the last companion is external.
    pub(super) external: bool,
}

pub(super) fn acts() -> impl Strategy<Value = Vec<Act>> {
    let verdict = prop_oneof![3 => Just(Verdict::Yes), 4 => Just(Verdict::No), 1 => Just(Verdict::Unreadable)];
    let closing = prop_oneof![
        6 => Just(Stage::None),
        1 => Just(Stage::PreClosing),
        1 => Just(Stage::Closing),
        1 => Just(Stage::Terminal),
    ];
    let answer = (any::<u8>(), verdict, 0_u8..=10, prop::bool::weighted(0.2), closing).prop_map(
        |(index, verdict, importance, selected, closing)| Act::Answer { index, verdict, importance, selected, closing },
    );
    let say = (
        prop::option::weighted(0.25, any::<u8>()),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
        prop::option::weighted(0.15, (3_u64..8_000).prop_map(Duration::from_secs)),
        prop::bool::weighted(0.1),
    );
    let act = prop_oneof![
        10 => say.prop_map(|(to, elsewhere, voice, bot, late, stop)| Act::Say { to, elsewhere, voice, bot, late, stop }),
        1 => Just(Act::CatchUp),
        2 => prop::option::weighted(0.4, any::<u8>()).prop_map(|to| Act::Event { to }),
        6 => (0_u64..30_000_000).prop_map(Act::Wait),
        1 => (0_u64..2_000_000_000).prop_map(Act::Wait),
        1 => (0_u64..60_000_000).prop_map(Act::Stall),
        1 => (0_u64..60_000_000).prop_map(Act::Restart),
        10 => answer,
        2 => any::<u8>().prop_map(Act::Error),
        4 => (0_u8..9).prop_map(Act::Write),
        1 => any::<u8>().prop_map(Act::FailReply),
        2 => (0_u8..=10).prop_map(Act::Judge),
        1 => Just(Act::LateAnswer),
        1 => any::<u8>().prop_map(Act::Edit),
        1 => any::<u8>().prop_map(Act::Delete),
        1 => (prop::option::of(any::<u8>()), prop::bool::weighted(0.3)).prop_map(|(target, paused)| Act::Pause { target, paused }),
        1 => Just(Act::Clear),
        1 => Just(Act::ReplaceModels),
        1 => any::<u8>().prop_map(Act::Leave),
        2 => any::<u8>().prop_map(Act::Join),
    ];
    prop::collection::vec(act, 1..120)
}

pub(super) struct Scene {
    pub(super) conversation: Conversation,
    pub(super) journal: Vec<Recorded>,
    pub(super) now: Moment,
    pub(super) settings: Policies,
    pub(super) cast: Vec<CompanionId>,
    external: Option<CompanionId>,
    pub(super) mouth: Mouth,
    pub(super) witness: Witness,
    pub(super) policies: BTreeMap<CompanionId, InterjectionPolicy>,
    /// The number of posted statements.
    pub(super) statements: u64,
    ledger: Ledger,
    drawn: Drawn,
    outcomes_by_companion: BTreeMap<CompanionId, Outcomes>,
    /// The number of human messages so far, and the number when the next speaker was selected.
    human_messages: u64,
    next_selected_at: Option<(u64, u32)>,
    /// The numbers of human messages and of openings when the companion of each owed reply was selected.
    selected_at: BTreeMap<Ticket, (u64, u32)>,
    /// Statements that acknowledge events are not counted.
    statements_in_a_row: u32,
    /// The number of statements that acknowledge events.
    pub(super) acknowledgements: u64,
    /// The number of human messages when each companion was last asked because of a silence.
    silences: BTreeMap<CompanionId, u64>,
    /// The number of statements since the conversation began, or was opened again, and when something was said last.
    turns: u32,
    /// How often the conversation began or was opened again.
    openings: u32,
    last_said: Moment,
}

/// The messages that one companion received, and their outcome.
#[derive(Default)]
struct Outcomes {
    received: Vec<Seq>,
    settled: Vec<Seq>,
    /// Addresses over the budget, each declined alone.
    declined: Vec<Seq>,
    removed: Vec<Seq>,
    asked: Option<Ticket>,
}

impl Scene {
    pub(super) fn new(setup: &Setup) -> Self {
        let cast: Vec<CompanionId> =
            ["aria", "ben", "cleo", "dora", "eli"].into_iter().take(setup.companions).map(CompanionId::from).collect();
        let policy = |index: usize| InterjectionPolicy {
            text_lull_timeout: Duration::from_secs(if setup.equal_timeouts { 10 } else { 8 + 3 * index as u64 }),
            voice_lull_timeout: Duration::from_secs(5),
            starts_after: (!setup.equal_timeouts && index != 1).then(|| Duration::from_secs(90 + 60 * (index as u64 / 2))),
            max_turns: (index == 3).then_some(2),
            repetition: index != 4,
            ..samples::policy(6)
        };
        let policies = cast.iter().enumerate().map(|(index, companion)| (companion.clone(), policy(index))).collect();
        let mut scene = Self {
            conversation: Conversation::default(),
            journal: Vec::new(),
            now: Moment::ZERO + Duration::from_secs(10_000),
            settings: settings(setup),
            outcomes_by_companion: cast.iter().map(|companion| (companion.clone(), Outcomes::default())).collect(),
            policies,
            statements: 0,
            ledger: Ledger::default(),
            drawn: Drawn::default(),
            human_messages: 0,
            next_selected_at: None,
            selected_at: BTreeMap::new(),
            statements_in_a_row: 0,
            acknowledgements: 0,
            silences: BTreeMap::new(),
            turns: 0,
            openings: 0,
            last_said: Moment::ZERO,
            external: None,
            mouth: Mouth::default(),
            witness: Witness::default(),
            cast,
        };
        if setup.external {
            scene.external = scene.cast.last().cloned();
        }
        for companion in scene.cast.clone() {
            scene.join(companion);
        }
        scene
    }

    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::Say { to, elsewhere, voice, bot, late, stop } => {
                let by = if to.is_some_and(|to| to > u8::MAX / 2) { "bob" } else { "ana" };
                let to = to.map(|to| self.member(to)).into_iter().collect();
                let message = Message {
                    asks_to_stop: *stop && !bot,
                    ..message(by, role(*bot), *voice, Address { companions: to, others: *elsewhere, ..Address::default() })
                };
                self.send(message, *late);
            }
            Act::Event { to } => {
                let to = to.map(|to| self.member(to)).into_iter().collect();
                self.happen(Address { companions: to, ..Address::default() });
            }
            Act::CatchUp => self.receive(Event::CaughtUp { read: 1, missed: None }),
            Act::Wait(micros) => self.wait(*micros),
            Act::Restart(micros) => self.restart(Duration::from_micros(*micros)),
            Act::Stall(micros) => self.now = self.now + Duration::from_micros(*micros),
            Act::Answer { index, verdict, importance, selected, closing } => {
                let vote = Vote { closing: *closing, selected: *selected, importance: (*importance).into(), ..plain(*verdict) };
                self.answer(*index, vote);
            }
            Act::Error(index) => {
                if let Some(ticket) = self.question(*index) {
                    self.step(Input::Unanswered { ticket, error: "timeout".into() });
                }
            }
            Act::Write(what) => {
                if let Some(ticket) = self.owed(*what / 3) {
                    let text = ["well, well, well", "well, well", "something else altogether"][usize::from(*what) % 3];
                    self.step(Input::Written { ticket, text: text.into() });
                }
            }
            Act::FailReply(which) => {
                if let Some(ticket) = self.owed(*which) {
                    self.step(Input::ReplyFailed { ticket, error: "timeout".into() });
                }
            }
            Act::Judge(tenths) => {
                if let Some((ticket, _)) = self.conversation.turns().open_judgement() {
                    self.step(Input::Judged { ticket, score: f64::from(*tenths) / 10.0, call: None });
                }
            }
            Act::LateAnswer => {
                let ticket = Ticket(self.conversation.position.tickets.0 + 7);
                self.step(Input::Answered { ticket, vote: plain(Verdict::Yes), call: None });
                if let Some(external) = &self.external {
                    let late = State::voted(&plain(Verdict::Yes), external.clone(), "0".into(), false);
                    self.step(Input::Voted(late));
                }
            }
            Act::Edit(which) => {
                if let Some(message) = self.pick(*which) {
                    self.receive(Event::Edited { message, text: "changed".into(), captions: Vec::new(), version: None });
                }
            }
            Act::Delete(which) => {
                if let Some(message) = self.pick(*which) {
                    self.outcomes_by_companion.values_mut().for_each(|outcomes| outcomes.removed.push(message));
                    let only = self
                        .conversation
                        .turns()
                        .owed_replies()
                        .find(|floor| floor.messages == [message])
                        .map(|floor| floor.ticket);
                    self.receive(Event::deleted(vec![message]));
                    let is_owed = only.is_some_and(|ticket| self.conversation.turns().owed_reply(ticket).is_some());
                    assert!(!is_owed, "nothing is left for reply {only:?} to answer");
                }
            }
            Act::Pause { target, paused } => {
                let companion = target.map(|target| self.member(target));
                self.receive(Event::Paused { companion, paused: *paused });
            }
            Act::ReplaceModels => {
                self.step(Input::ModelsReplaced);
                assert!(
                    !self.conversation.gates.values().any(Gate::is_backing_off),
                    "a companion waits for the models of before"
                );
            }
            Act::Clear => {
                self.cast.clone().iter().for_each(|companion| self.forget_unsettled(companion));
                self.statements_in_a_row = 0;
                self.turns = 0;
                // The next message or statement begins an episode.
                self.last_said = Moment::ZERO;
                self.receive(Event::cleared());
            }
            Act::Leave(target) => {
                let companion = self.member(*target);
                self.forget_unsettled(&companion);
                self.receive(Event::Left { companion });
            }
            Act::Join(target) => {
                let companion = self.member(*target);
                self.join(companion);
            }
        }
    }

    pub(super) fn say(&mut self, address: Address, voice: bool, bot: bool) {
        self.say_late("ana", address, voice, bot, None);
    }

    /// An event arrives that must be acknowledged.
    pub(super) fn happen(&mut self, address: Address) {
        let message = Message { kind: Some("raid".into()), ..message("ana", Role::Person, false, address) };
        self.receive(Event::Said { message, reply_to: None, reply: None, said_at: None });
    }

    /// Sends a message that arrives late by this duration.
    pub(super) fn say_late(&mut self, by: &str, address: Address, voice: bool, bot: bool, late: Option<Duration>) {
        self.send(message(by, role(bot), voice, address), late);
    }

    /// Sends a message that arrives late by this duration.
    pub(super) fn send(&mut self, message: Message, late: Option<Duration>) {
        if message.from.role == Role::Person {
            self.human_messages += 1;
            self.statements_in_a_row = 0;
        }
        self.receive(Event::Said { message, reply_to: None, reply: None, said_at: late.map(|late| self.now - late) });
    }

    /// A person calls a companion. With `handled` false, the process dies before it handles the message.
    pub(super) fn call(&mut self, by: &str, companion: &str, handled: bool) -> Seq {
        let address = Address { companions: vec![companion.into()], ..Address::default() };
        if handled {
            self.say_late(by, address, false, false, None);
        } else {
            let seq = Seq(self.journal.len() as u64 + 1);
            let message = message(by, Role::Person, false, address);
            let event = Event::Said { message, reply_to: None, reply: None, said_at: None };
            self.journal.push(Recorded { seq, at: self.now, handled: seq, turn: None, event });
        }
        let is_message = |recorded: &&Recorded| matches!(recorded.event, Event::Said { .. });
        self.journal.iter().rfind(is_message).expect("a message was just recorded").seq
    }

    /// Time passes. Deadlines on the way are woken at their moments.
    pub(super) fn wait(&mut self, micros: u64) {
        let until = self.now + Duration::from_micros(micros);
        let mut at_once = 0;
        while let Some(due) = self.conversation.wake_at().filter(|due| *due <= until) {
            at_once = if due > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 20, "woken twenty times for the same moment");
            self.now = self.now.max(due);
            self.step(Input::Woken);
            let mut rounds = self.conversation.turns().rounds().iter();
            assert!(rounds.all(|round| round.deadline > self.now), "a round is open after its deadline");
            let due = self.conversation.turns().floor().and_then(OwedReply::deadline);
            assert!(
                due.is_none_or(|due| due > self.now),
                "a companion has the floor after a deadline: {:?}",
                self.conversation.turns().floor()
            );
        }
        self.now = until;
    }

    /// Answers a question. For an external companion, submits its vote.
    pub(super) fn answer(&mut self, index: u8, vote: Vote) {
        let Some(ticket) = self.question(index) else { return };
        let question = self.conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket);
        let external =
            question.map(|(companion, _)| companion.clone()).filter(|companion| self.external.as_ref() == Some(companion));
        let round = external.as_ref().and_then(|external| self.conversation.turns().round_awaiting(external));
        match (external.clone(), round) {
            (Some(external), Some(round)) => {
                let vote = State::voted(&vote, external, round.message_id(), false);
                self.step(Input::Voted(vote));
            }
            (Some(external), None) => panic!("{external} is asked without a round"),
            (None, _) => self.step(Input::Answered { ticket, vote, call: None }),
        }
    }

    fn join(&mut self, companion: CompanionId) {
        let external = self.external.as_ref() == Some(&companion);
        self.receive(Event::Joined { companion, external });
    }

    /// Asserts that every message that a companion received settled once and in order, or was declined alone, or is unsettled, or was deleted.
    pub(super) fn check_every_message_settles_once(&self) {
        for (companion, outcomes) in &self.outcomes_by_companion {
            assert!(
                outcomes.settled.is_sorted_by(|one, next| one < next),
                "{companion} settled twice or out of order: {:?}",
                outcomes.settled
            );
            if self.conversation.gate(companion).is_none() {
                continue;
            }
            let unsettled: Vec<_> = self.conversation.buffer(companion).map(|entry| entry.seq).collect();
            assert!(unsettled.len() <= self.settings.gate.max_buffer);
            for seq in &outcomes.received {
                let times = [&outcomes.settled, &outcomes.declined].map(|done| done.iter().filter(|other| *other == seq).count());
                assert!(times.iter().sum::<usize>() <= 1, "{seq} is settled {times:?} times for {companion}");
                let is_settled = times != [0, 0];
                let is_unsettled = unsettled.contains(seq);
                assert!(is_settled || is_unsettled || outcomes.removed.contains(seq), "{seq} was lost for {companion}");
                assert!(!(is_settled && is_unsettled), "{seq} is settled and unsettled for {companion}");
            }
        }
    }

    /// The conversation as a fold of the journal restores it.
    pub(super) fn folded(&self) -> Conversation {
        self.folded_under(&self.settings, &self.policies)
    }

    /// The conversation as it continues after a restart at this moment, with what follows.
    pub(super) fn resumed(&self, now: Moment, world: &mut World<'_>) -> (Conversation, Vec<Output>) {
        resumed(self.journal.clone(), now, world)
    }

    /// A fold of the journal while other settings are in force.
    pub(super) fn folded_under(&self, settings: &Policies, policies: &BTreeMap<CompanionId, InterjectionPolicy>) -> Conversation {
        let mut journal = self.journal.clone();
        order_of_handling(&mut journal);
        let mut folded = Conversation::default();
        let mut ledger = Ledger::default();
        with_world(settings, policies, &mut ledger, &mut Drawn::default(), |world| {
            for recorded in &journal {
                folded.fold(recorded, world);
            }
        });
        folded
    }

    /// Checks that what follows the record agrees with the conversation.
    pub(super) fn check_bids(&self) {
        let mut journal = self.journal.clone();
        order_of_handling(&mut journal);
        self.with_world(|world| check_bids(&journal, |conversation, recorded| conversation.fold(recorded, world)));
    }

    pub(super) fn with_world<T>(&self, run: impl FnOnce(&mut World<'_>) -> T) -> T {
        with_world(&self.settings, &self.policies, &mut Ledger::default(), &mut Drawn::default(), run)
    }

    fn member(&self, which: u8) -> CompanionId {
        self.cast[usize::from(which) % self.cast.len()].clone()
    }

    fn owed(&self, index: u8) -> Option<Ticket> {
        let owed: Vec<_> = self.conversation.turns().owed_replies().map(|floor| floor.ticket).collect();
        owed.get(usize::from(index) % owed.len().max(1)).copied()
    }

    fn question(&self, index: u8) -> Option<Ticket> {
        let open: Vec<_> = self.conversation.open_questions().map(|(_, evaluation)| evaluation.ticket).collect();
        open.get(usize::from(index) % open.len().max(1)).copied()
    }

    fn pick(&self, which: u8) -> Option<Seq> {
        let entries: Vec<_> = self.conversation.window().entries().map(|entry| entry.seq).collect();
        entries.get(usize::from(which) % entries.len().max(1)).copied()
    }

    fn forget_unsettled(&mut self, companion: &CompanionId) {
        if self.conversation.gate(companion).is_some() {
            let unsettled: Vec<_> = self.conversation.buffer(companion).map(|entry| entry.seq).collect();
            self.outcomes(companion).removed.extend(unsettled);
        }
    }

    fn outcomes(&mut self, companion: &CompanionId) -> &mut Outcomes {
        self.outcomes_by_companion.get_mut(companion).expect("the companion is one of the cast")
    }

    pub(super) fn receive(&mut self, event: Event) {
        let recorded = self.accept(event);
        self.step(Input::Inbound(Box::new(recorded)));
    }

    /// Journals an inbound event.
    fn accept(&mut self, event: Event) -> Recorded {
        let seq = Seq(self.journal.len() as u64 + 1);
        if let Event::Said { message, .. } = &event {
            if message.speech.is_some() && !message.is_backchannel() {
                self.human_messages += 1;
                self.statements_in_a_row = 0;
            }
            if !message.is_event() && !message.is_backchannel() {
                self.begin_episode();
                self.last_said = self.now;
            }
            for (companion, outcomes) in &mut self.outcomes_by_companion {
                if self.conversation.gate(companion).is_some() && !message.is_by(companion) {
                    outcomes.received.push(seq);
                }
            }
        }
        let recorded = Recorded { seq, at: self.now, handled: seq, turn: None, event };
        self.journal.push(recorded.clone());
        recorded
    }

    /// Something happens in the voice call that is not on record.
    pub(super) fn hear(&mut self, heard: utterance::Input) {
        self.step(Input::Voice(Notice::Call(heard)));
    }

    /// The next message may begin a new episode.
    fn begin_episode(&mut self) {
        if self.now.since(self.last_said) >= self.settings.closing.episode_idle() {
            self.open_again();
        }
    }

    fn open_again(&mut self) {
        self.turns = 0;
        self.openings += 1;
    }

    /// The process dies, and the next one continues from the journal after this duration.
    pub(super) fn restart(&mut self, away: Duration) {
        let mut ledger = Ledger::default();
        let journal = self.journal.clone();
        self.now = self.now + away;
        let (conversation, outputs) =
            with_world(&self.settings, &self.policies, &mut ledger, &mut self.drawn, |world| resumed(journal, self.now, world));
        self.conversation = conversation;
        self.ledger = ledger;
        self.mouth.die();
        self.witness.die();
        self.handle_outputs(outputs);
    }

    pub(super) fn step(&mut self, input: Input) {
        self.witness.see(&input, &self.conversation, self.drawn.rolls.len(), self.now);
        let outputs = with_world(&self.settings, &self.policies, &mut self.ledger, &mut self.drawn, |world| {
            self.conversation.step(self.now, input, world)
        });
        self.handle_outputs(outputs);
    }

    fn handle_outputs(&mut self, outputs: Vec<Output>) {
        let at = self.conversation.clock();
        let (mut posts, mut handed_over, mut in_call) = (Vec::new(), Vec::new(), Vec::new());
        for output in outputs {
            self.witness.check(&output, &self.conversation, &self.drawn.rolls, &self.mouth, at);
            match output {
                Output::HandOver(messages) => handed_over.push(messages),
                output @ (Output::HasLeft { .. } | Output::RedactSpeech { .. }) => in_call.push(output),
                Output::Made(made) => {
                    let Made { at, handled, turn, event } = *made;
                    self.observe(&event);
                    let seq = Seq(self.journal.len() as u64 + 1);
                    self.journal.push(Recorded { seq, at, handled, turn, event });
                }
                Output::Call(effect) => {
                    if let CallEffect::Reply { ticket, aloud, .. } = &*effect {
                        self.mouth.follow(*ticket, aloud);
                    }
                }
                Output::Post(posting) => posts.push(*posting),
                Output::Cancel { ticket } => {
                    for outcomes in self.outcomes_by_companion.values_mut() {
                        outcomes.asked.take_if(|asked| *asked == ticket);
                    }
                }
                _ => {}
            }
        }
        self.witness.check_step(&self.conversation, &self.drawn.rolls);
        let conversation = &self.conversation;
        assert!(
            conversation.turns.selected.is_none() || conversation.turns.floor.is_none(),
            "a selected companion and a floor exist at once"
        );
        assert!(
            conversation.turns().owed_replies().all(|floor| !floor.messages.is_empty() || floor.trigger == Trigger::Silence),
            "a companion owes a statement that answers nothing"
        );
        let speakers: BTreeSet<_> = conversation.turns().owed_replies().map(|floor| &floor.companion).collect();
        assert_eq!(speakers.len(), conversation.turns().owed_replies().count(), "a companion owes two statements");
        let rounds: BTreeSet<_> = conversation.turns().rounds().iter().map(|round| round.message).collect();
        assert_eq!(rounds.len(), conversation.turns().rounds().len(), "two rounds have the same number");
        let must_wait = conversation.turns().is_floor_taken() || conversation.turns().is_being_judged();
        let awaits_last = || self.with_world(|world| Step::new(&mut conversation.clone(), world).awaits_last_statement());
        assert!(conversation.turns.held.is_empty() || must_wait || awaits_last(), "a vote is held although the floor is free");
        for posting in posts.iter().filter(|posting| posting.spoken.is_none()) {
            let floor = conversation.turns().floor().map(|floor| floor.ticket);
            assert_eq!(floor, Some(posting.ticket), "a statement is posted without the floor");
        }
        if let Some(call) = conversation.voice.live.call() {
            // One whose rest is posted waits for the model, whose call has a deadline.
            let is_over = call.reply.as_ref().is_none_or(|reply| reply.awaits_rest());
            let waits = call.reply_deadline().is_some() || call.is_handing_over();
            assert!(is_over || waits, "a spoken reply waits without a deadline");
        }
        for view in self.conversation.companions() {
            assert!(view.gate.stage >= view.gate.minimum_stage, "{} is below its minimum stage", view.companion);
        }
        for posting in posts {
            if !self.witness.was_late() {
                self.mouth.check_heard(&posting);
            }
            self.post(posting);
        }
        for messages in handed_over {
            let batch: Vec<_> = messages.into_iter().map(|event| self.accept(event)).collect();
            self.step(Input::HandedOver(batch));
        }
        in_call.into_iter().for_each(|effect| self.carry_out_in_call(effect));
    }

    /// Puts on record who has left, and deletes what people said who want to be ignored.
    fn carry_out_in_call(&mut self, output: Output) {
        match output {
            Output::HasLeft { user } if self.conversation.voice.joined_call_at(&user).is_some() => {
                self.receive(Event::VoiceLeft { from: samples::person(user.as_str()) });
            }
            Output::RedactSpeech { user } => {
                let messages = self.conversation.voice.buffered_segments_of(&user);
                if !messages.is_empty() {
                    self.receive(Event::deleted(messages));
                }
            }
            _ => {}
        }
    }

    fn post(&mut self, posting: Posting) {
        let Posting { companion, ticket, text, spoken } = posting;
        let modality = if spoken.is_some() { Modality::Voice } else { Modality::Text };
        let cut = spoken.and_then(|spoken| spoken.cut);
        let message = Message { cut, modality, ..samples::message(author(companion.as_str(), Role::Companion), &text) };
        self.statements += 1;
        self.begin_episode();
        let selected_at = self.selected_at.remove(&ticket);
        self.turns += u32::from(selected_at.is_none_or(|(_, openings)| openings == self.openings));
        let most = self.settings.turn_taking.max_turns;
        assert!(most.is_none_or(|most| self.turns <= most), "companions made more statements than max_turns allows");
        let acknowledges = self.conversation.turns().owed_reply(ticket).is_some_and(|floor| floor.trigger == Trigger::Event);
        if !acknowledges && selected_at.is_some_and(|(humans, _)| humans == self.human_messages) {
            self.statements_in_a_row += 1;
        }
        assert!(
            self.statements_in_a_row <= self.settings.turn_taking.max_companion_streak,
            "companions made too many statements without a human"
        );
        self.receive(Event::Said { message, reply_to: None, reply: Some(ticket), said_at: None });
    }

    fn observe(&mut self, event: &Event) {
        match event {
            Event::Evaluated(evaluated) => {
                if evaluated.trigger == Trigger::Silence {
                    assert!(self.human_messages > 0, "{} starts before the first human message", evaluated.companion);
                    let last = self.silences.insert(evaluated.companion.clone(), self.human_messages);
                    assert!(last < Some(self.human_messages), "{} starts twice in one silence", evaluated.companion);
                }
                let outcomes =
                    self.outcomes_by_companion.get_mut(&evaluated.companion).expect("the companion is one of the cast");
                assert_eq!(outcomes.asked, None, "{} was asked twice at once", evaluated.companion);
                outcomes.asked = Some(evaluated.ticket);
            }
            Event::Decided(decided) => {
                if decided.reason == Reason::Event {
                    self.next_selected_at = Some((self.human_messages, self.openings));
                }
                for companion in &decided.companions {
                    let asked =
                        self.conversation.gate(companion).and_then(|gate| gate.evaluation).map(|evaluation| evaluation.ticket);
                    let outcomes = self.outcomes_by_companion.get_mut(companion).expect("the companion is one of the cast");
                    outcomes.asked.take_if(|asked| Some(*asked) == decided.ticket);
                    if decided.decision == Decision::No {
                        let done = if decided.settles_by_cursor() { &mut outcomes.settled } else { &mut outcomes.declined };
                        done.extend(&decided.messages);
                    }
                    if decided.reason == Reason::Stale {
                        outcomes.asked = outcomes.asked.filter(|ticket| Some(*ticket) == asked);
                    }
                }
            }
            Event::Unanswered { companion, ticket, .. } => {
                self.outcomes(companion).asked.take_if(|asked| asked == ticket);
            }
            Event::RoundClosed(RoundClosed { selected: Some(_), .. }) | Event::HeldSelected { .. } => {
                self.next_selected_at = Some((self.human_messages, self.openings))
            }
            Event::SentenceStarting { ticket, .. } => self.mouth.started(*ticket),
            Event::SentencePlayed { ticket, heard: 1.., .. } => self.mouth.heard(*ticket),
            Event::Replanned { companion, ticket, next, messages, .. }
            | Event::ReplyExtended { companion, ticket, next, messages, .. } => {
                let selected_at = self.selected_at.remove(ticket).expect("the reply is owed");
                self.selected_at.insert(*next, selected_at);
                let outcomes = self.outcomes(companion);
                let new: Vec<_> = messages.iter().filter(|seq| !outcomes.settled.contains(seq)).copied().collect();
                outcomes.settled.extend(new);
            }
            Event::Cancelled { ticket, .. } => drop(ticket.map(|ticket| self.selected_at.remove(&ticket))),
            Event::ReplyOwed { companion, ticket, messages, trigger, .. } => {
                self.acknowledgements += u64::from(*trigger == Trigger::Event);
                let is_closed = self.conversation.gate(companion).is_some_and(Gate::is_closed);
                assert!(!is_closed, "{companion} speaks after it has ended the conversation");
                let selected_at = self.next_selected_at.take().unwrap_or((self.human_messages, self.openings));
                self.selected_at.insert(*ticket, selected_at);
                self.outcomes(companion).settled.extend(messages);
            }
            Event::ReplyFailed { ticket, .. } => {
                // A companion that takes over is selected at that moment.
                if self.conversation.turns().selected().is_some_and(|turn| turn.speak_at.is_none()) {
                    self.next_selected_at = None;
                }
                self.selected_at.remove(ticket);
            }
            Event::StageChanged { from: Stage::Terminal, .. } => self.open_again(),
            _ => {}
        }
    }
}

/// What chance has decided so far.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    jitter: u8,
    rolls: Vec<f64>,
}

fn role(bot: bool) -> Role {
    if bot { Role::Bot } else { Role::Person }
}

pub(super) fn message(by: &str, role: Role, voice: bool, address: Address) -> Message {
    let modality = if voice { Modality::Voice } else { Modality::Text };
    Message { modality, lull_endpoint: voice, address, ..samples::message(author(by, role), "words") }
}

/// Small limits, so that the tests reach them.
fn settings(setup: &Setup) -> Policies {
    static SMALL: LazyLock<Policies> = LazyLock::new(|| {
        samples::policies(&serde_json::json!({
            "gate": {
                "foreign_bots": "all",
                "max_buffer": 12,
                "evaluations_per_hour": 40,
                "guild_evaluations_per_hour": 100,
                "addresses_per_minute": 3,
                "acknowledgements_per_minute": 2,
                "guild_statements_per_day": 100,
            },
            "closing": { "reopen_after": 3 },
        }))
    });
    let mut settings = SMALL.clone();
    settings.turn_taking.max_companion_streak = setup.streak;
    settings.turn_taking.max_turns = setup.max_turns.or(settings.turn_taking.max_turns);
    settings.repetition.judge = serde_json::from_value(setup.judge.into()).unwrap();
    settings
}

pub(super) fn plain(verdict: Verdict) -> Vote {
    let mood = if verdict == Verdict::Yes { 0.1 } else { 0.0 };
    Vote { verdict, why: Some("because".into()), importance: 5.0, selected: false, closing: Stage::None, mood, risk: None }
}

/// The conversation of this journal as it continues after a restart at this moment, with what follows.
fn resumed(mut journal: Vec<Recorded>, now: Moment, world: &mut World<'_>) -> (Conversation, Vec<Output>) {
    order_of_handling(&mut journal);
    let (handled, unhandled) = split_handled(&journal);
    let (mut resumed, mut caught_up) = (Conversation::default(), Vec::new());
    for recorded in handled {
        resumed.fold(recorded, world);
    }
    for ticket in unhandled.iter().filter_map(|recorded| recorded.event.reply()) {
        resumed.note_interrupted_posting(ticket);
    }
    for recorded in unhandled {
        caught_up.extend(resumed.catch_up(recorded.clone(), world));
    }
    let outputs = resumed.resume(now, caught_up, world);
    (resumed, outputs)
}

pub(super) fn with_world<T>(
    settings: &Policies,
    policies: &BTreeMap<CompanionId, InterjectionPolicy>,
    ledger: &mut Ledger,
    drawn: &mut Drawn,
    run: impl FnOnce(&mut World<'_>) -> T,
) -> T {
    let Drawn { jitter, rolls } = drawn;
    let mut jitter = || {
        *jitter = jitter.wrapping_add(3);
        (*jitter % 5) as i8 - 2
    };
    let mut roll = || {
        rolls.push(((7 * rolls.len() + 1) % 10) as f64 / 10.0);
        rolls.last().copied()
    };
    let mut turn = || TurnId(u128::from(TURNS.fetch_add(1, Ordering::Relaxed)));
    run(&mut World {
        channel: &"test".into(),
        rules: settings.rules(),
        policies,
        jitter: &mut jitter,
        roll: &mut roll,
        turn: &mut turn,
        ledger,
        summary: None,
        notes: None,
        tokens_per_day: None,
        is_unpostable: false,
    })
}

pub(super) fn as_recorded(conversation: &Conversation) -> Conversation {
    let mut conversation = conversation.clone();
    for floor in conversation.turns.floor.as_deref_mut().into_iter().chain(&mut conversation.turns.late) {
        (floor.is_posting, floor.text) = (false, None);
    }
    conversation
}
