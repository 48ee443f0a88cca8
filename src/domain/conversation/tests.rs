//! What must hold for every conversation, whatever is said, answered, lost or dropped.

use proptest::prelude::*;

use super::super::event::order_of_handling;
use super::super::message::{Address, Author, Message, Modality, Role};
use super::*;

const ARIA: &str = "aria";

/// Something that may happen next.
#[derive(Clone, Debug)]
enum Act {
    Say { addressed: bool, elsewhere: bool, voice: bool, bot: bool },
    Wait(u64),
    Yes,
    No,
    Unreadable,
    Error,
    Write,
    FailReply,
    LateAnswer,
    Edit(u8),
    Delete(u8),
    Pause(bool),
    Clear,
    Leave,
    Join,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        10 => (prop::bool::weighted(0.2), prop::bool::weighted(0.2), prop::bool::weighted(0.1), prop::bool::weighted(0.05))
            .prop_map(|(addressed, elsewhere, voice, bot)| Act::Say { addressed, elsewhere, voice, bot }),
        5 => (0_u64..30_000_000).prop_map(Act::Wait),
        1 => (0_u64..2_000_000_000).prop_map(Act::Wait),
        3 => Just(Act::Yes),
        4 => Just(Act::No),
        1 => Just(Act::Unreadable),
        2 => Just(Act::Error),
        4 => Just(Act::Write),
        1 => Just(Act::FailReply),
        1 => Just(Act::LateAnswer),
        1 => any::<u8>().prop_map(Act::Edit),
        1 => any::<u8>().prop_map(Act::Delete),
        1 => prop::bool::weighted(0.3).prop_map(Act::Pause),
        1 => Just(Act::Clear),
        1 => Just(Act::Leave),
        2 => Just(Act::Join),
    ];
    prop::collection::vec(act, 1..120)
}

/// A channel with one companion, its journal, and everything that was lived through.
struct Scene {
    conversation: Conversation,
    journal: Vec<Recorded>,
    now: Moment,
    settings: Settings,
    tempers: BTreeMap<CompanionId, Temper>,
    ledger: Ledger,
    drawn: u8,
    said: Vec<Seq>,
    gone: Vec<Seq>,
    settled: Vec<Seq>,
    asked: Option<Ticket>,
}

impl Scene {
    fn new() -> Self {
        let temper = Temper {
            starting_interval: 6,
            text_lull_timeout: Duration::from_secs(10),
            voice_lull_timeout: Duration::from_secs(5),
        };
        let mut stage = Self {
            conversation: Conversation::default(),
            journal: Vec::new(),
            now: Moment::ZERO,
            settings: settings(),
            tempers: BTreeMap::from([(ARIA.into(), temper)]),
            ledger: Ledger::default(),
            drawn: 0,
            said: Vec::new(),
            gone: Vec::new(),
            settled: Vec::new(),
            asked: None,
        };
        stage.hear(Event::Joined { companion: ARIA.into(), external: false });
        stage
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Say { addressed, elsewhere, voice, bot } => self.say(*addressed, *elsewhere, *voice, *bot),
            Act::Wait(micros) => self.wait(*micros),
            Act::Yes => self.answer(Verdict::Yes),
            Act::No => self.answer(Verdict::No),
            Act::Unreadable => self.answer(Verdict::Unreadable),
            Act::Error => {
                if let Some(ticket) = self.question() {
                    self.step(Input::Unanswered { ticket, error: "timeout".into() });
                }
            }
            Act::Write => {
                if let Some(ticket) = self.conversation.floor().map(|floor| floor.ticket) {
                    self.step(Input::Written { ticket, text: "well".into() });
                }
            }
            Act::FailReply => {
                if let Some(ticket) = self.conversation.floor().map(|floor| floor.ticket) {
                    self.step(Input::ReplyFailed { ticket, error: "timeout".into() });
                }
            }
            Act::LateAnswer => {
                let ticket = Ticket(self.conversation.tickets.0 + 7);
                self.step(Input::Answered { ticket, vote: plain(Verdict::Yes), call: None });
            }
            Act::Edit(which) => {
                if let Some(message) = self.pick(*which) {
                    self.hear(Event::Edited { message, text: "changed".into() });
                }
            }
            Act::Delete(which) => {
                if let Some(message) = self.pick(*which) {
                    self.gone.push(message);
                    self.hear(Event::Deleted { messages: vec![message] });
                }
            }
            Act::Pause(paused) => self.hear(Event::Paused { companion: None, paused: *paused }),
            Act::Clear => {
                self.forget_unsettled();
                self.hear(Event::Cleared);
            }
            Act::Leave => {
                self.forget_unsettled();
                self.hear(Event::Left { companion: ARIA.into() });
            }
            Act::Join => self.hear(Event::Joined { companion: ARIA.into(), external: false }),
        }
    }

    fn say(&mut self, addressed: bool, elsewhere: bool, voice: bool, bot: bool) {
        let role = if bot { Role::Bot } else { Role::Person };
        let message = Message {
            id: None,
            from: Author { id: "ana".into(), name: "Ana".into(), role },
            text: "words".into(),
            modality: if voice { Modality::Voice } else { Modality::Text },
            lull_endpoint: voice,
            address: Address { companions: if addressed { vec![ARIA.into()] } else { Vec::new() }, others: elsewhere },
        };
        if self.conversation.gate(&ARIA.into()).is_some() {
            self.said.push(Seq(self.journal.len() as u64 + 1));
        }
        self.hear(Event::Said { message, reply_to: None, reply: None });
    }

    /// Time passes; whatever is due on the way is woken at its moment.
    fn wait(&mut self, micros: u64) {
        let until = self.now + Duration::from_micros(micros);
        while let Some(due) = self.conversation.wake_at().filter(|due| *due <= until) {
            assert!(due >= self.now || due <= self.conversation.clock(), "woken for the past again and again");
            self.now = self.now.max(due);
            self.step(Input::Woken);
        }
        self.now = until;
    }

    fn answer(&mut self, verdict: Verdict) {
        if let Some(ticket) = self.question() {
            self.step(Input::Answered { ticket, vote: plain(verdict), call: None });
        }
    }

    fn question(&self) -> Option<Ticket> {
        self.conversation.open_questions().map(|(_, evaluation)| evaluation.ticket).next()
    }

    fn pick(&self, which: u8) -> Option<Seq> {
        let entries: Vec<_> = self.conversation.window().entries().map(|entry| entry.seq).collect();
        entries.get(usize::from(which) % entries.len().max(1)).copied()
    }

    fn forget_unsettled(&mut self) {
        let unsettled: Vec<_> = self.conversation.buffer(&ARIA.into()).map(|entry| entry.seq).collect();
        self.gone.extend(unsettled);
    }

    fn hear(&mut self, event: Event) {
        let seq = Seq(self.journal.len() as u64 + 1);
        let recorded = Recorded { seq, at: self.now, handled: seq, event };
        self.journal.push(recorded.clone());
        self.step(Input::Heard(recorded));
    }

    fn step(&mut self, input: Input) {
        let outputs = with_world(&self.settings, &self.tempers, &mut self.ledger, &mut self.drawn, |world| {
            self.conversation.step(self.now, input, world)
        });
        let at = self.conversation.clock();
        let mut posts = Vec::new();
        for output in outputs {
            match output {
                Output::Made { handled, event } => {
                    self.notice(&event);
                    let seq = Seq(self.journal.len() as u64 + 1);
                    self.journal.push(Recorded { seq, at, handled, event });
                }
                Output::Post { ticket, text, .. } => posts.push((ticket, text)),
                Output::Cancel { ticket } => {
                    self.asked.take_if(|asked| *asked == ticket);
                }
                _ => {}
            }
        }
        for (ticket, text) in posts {
            let from = Author { id: ARIA.into(), name: "Aria".into(), role: Role::Companion };
            let message =
                Message { id: None, from, text, modality: Modality::Text, lull_endpoint: false, address: Address::default() };
            self.hear(Event::Said { message, reply_to: None, reply: Some(ticket) });
        }
    }

    fn notice(&mut self, event: &Event) {
        match event {
            Event::Evaluated(evaluated) => {
                assert_eq!(self.asked, None, "a gate was asked twice at once");
                self.asked = Some(evaluated.ticket);
            }
            Event::Decided(decided) => {
                self.asked.take_if(|asked| Some(*asked) == decided.ticket);
                if decided.decision == Decision::No {
                    self.settled.extend(&decided.messages);
                }
                if decided.reason == Reason::Stale && self.question().is_none() {
                    self.asked = None;
                }
            }
            Event::Unanswered { ticket, .. } => {
                self.asked.take_if(|asked| asked == ticket);
            }
            Event::ReplyOwed { messages, .. } => self.settled.extend(messages),
            _ => {}
        }
    }

    /// The conversation as the journal gives it again, brought to the same moment.
    fn folded(&self) -> Conversation {
        let mut journal = self.journal.clone();
        order_of_handling(&mut journal);
        let mut folded = Conversation::default();
        let mut ledger = Ledger::default();
        with_world(&self.settings, &self.tempers, &mut ledger, &mut 0, |world| {
            for recorded in &journal {
                folded.fold(recorded, world);
            }
            folded.clock = self.conversation.clock();
            let now = folded.clock;
            folded.fire_due(|due| due < now || !self.is_armed_at(due));
            for (companion, gate) in &mut folded.gates {
                let lived = self.conversation.gate(companion).and_then(|gate| gate.retry_at());
                if gate.retry_at() == Some(now) && lived.is_none() && gate.waiting.is_none() {
                    gate.end_back_off();
                }
            }
            folded.tidy(world, &mut Vec::new());
        });
        folded
    }

    fn is_armed_at(&self, due: Moment) -> bool {
        self.conversation.companions().any(|view| view.gate.lull_at == Some(due))
    }
}

/// Small limits, so that they are met.
fn settings() -> Settings {
    let overlay = serde_json::json!({
        "gate": {
            "foreign_bots": "all",
            "max_buffer": 12,
            "evaluations_per_hour": 40,
            "guild_evaluations_per_hour": 100,
            "addresses_per_minute": 3,
            "guild_statements_per_day": 100,
        },
    });
    Settings::overlay(overlay).unwrap()
}

fn plain(verdict: Verdict) -> Vote {
    Vote { verdict, why: Some("because".into()), importance: 5.0, selected: false, closing: Stage::None }
}

fn with_world<T>(
    settings: &Settings,
    tempers: &BTreeMap<CompanionId, Temper>,
    ledger: &mut Ledger,
    drawn: &mut u8,
    run: impl FnOnce(&mut World<'_>) -> T,
) -> T {
    let mut jitter = || {
        *drawn = drawn.wrapping_add(3);
        (*drawn % 5) as i8 - 2
    };
    run(&mut World {
        channel: &"test".into(),
        rules: Rules::from(settings),
        tempers,
        jitter: &mut jitter,
        ledger,
        summary_after: None,
        tokens_per_day: None,
    })
}

fn without_what_is_not_on_record(conversation: &Conversation) -> Conversation {
    let mut conversation = conversation.clone();
    if let Some(floor) = &mut conversation.floor {
        floor.is_posting = false;
    }
    conversation
}

proptest! {
    #[test]
    fn a_gate_is_never_asked_twice_at_once_and_every_message_settles_once_in_order(acts in acts()) {
        let mut stage = Scene::new();

        for act in &acts {
            stage.act(act);
        }

        prop_assert!(stage.settled.is_sorted_by(|one, next| one < next), "settled twice or out of order: {:?}", stage.settled);
        let unsettled: Vec<_> = stage.conversation.buffer(&ARIA.into()).map(|entry| entry.seq).collect();
        for seq in &stage.said {
            let is_settled = stage.settled.contains(seq);
            let is_kept = unsettled.contains(seq);
            prop_assert!(is_settled || is_kept || stage.gone.contains(seq), "{seq} was lost");
            prop_assert!(!(is_settled && is_kept), "{seq} is settled and still to be read");
        }
        prop_assert!(unsettled.len() <= stage.settings.gate.max_buffer);
    }

    #[test]
    fn the_journal_gives_the_conversation_again(acts in acts()) {
        let mut stage = Scene::new();

        for act in &acts {
            stage.act(act);
            prop_assert_eq!(stage.folded(), without_what_is_not_on_record(&stage.conversation), "after {:?}", act);
        }
    }

    #[test]
    fn a_snapshot_loses_nothing(acts in acts()) {
        let mut stage = Scene::new();

        for act in &acts {
            stage.act(act);
        }
        let written = serde_json::to_string(&stage.conversation).unwrap();
        let read: Conversation = serde_json::from_str(&written).unwrap();

        prop_assert_eq!(read, without_what_is_not_on_record(&stage.conversation));
    }

    #[test]
    fn whatever_happened_an_unsettled_message_is_considered_in_the_end(acts in acts()) {
        let mut stage = Scene::new();
        for act in &acts {
            stage.act(act);
        }
        stage.act(&Act::Join);
        stage.act(&Act::Pause(false));

        for _ in 0..40 {
            stage.act(&Act::No);
            stage.act(&Act::FailReply);
            stage.wait(700_000_000);
        }

        prop_assert_eq!(stage.conversation.buffer(&ARIA.into()).count(), 0);
        prop_assert!(stage.conversation.is_at_rest());
    }

    #[test]
    fn after_a_crash_what_was_going_on_goes_on(acts in acts(), away in 0_u64..20_000_000_000) {
        let mut stage = Scene::new();
        for act in &acts {
            stage.act(act);
        }

        let mut resumed = stage.folded();
        let now = stage.now + Duration::from_micros(away);
        let outputs = with_world(&stage.settings, &stage.tempers, &mut Ledger::default(), &mut 0, |world| resumed.resume(now, world));

        let asked: Vec<_> = outputs.iter().filter(|output| matches!(output, Output::Made { event: Event::Evaluated(_), .. })).collect();
        prop_assert!(asked.len() <= 1);
        prop_assert_eq!(resumed.floor().map(|floor| floor.ticket), stage.conversation.floor().map(|floor| floor.ticket));
        let is_watched = resumed.floor().is_some() || resumed.open_questions().next().is_some() || resumed.wake_at().is_some();
        prop_assert!(is_watched || resumed.is_at_rest(), "unsettled messages that nothing will ever look at");
    }
}
