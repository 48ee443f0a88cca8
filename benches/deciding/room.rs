//! A conversation without actors. All its questions are answered NO at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tertulia::domain::budget::Ledger;
use tertulia::domain::closing::Stage;
use tertulia::domain::conversation::{Conversation, Input, Output, Rules, Verdict, World};
use tertulia::domain::event::{Event, Made, Recorded};
use tertulia::domain::gate::InterjectionPolicy;
use tertulia::domain::id::{ChannelId, CompanionId, Seq, Ticket, TurnId};
use tertulia::domain::message::{Address, Author, Message, Role};
use tertulia::domain::moment::Moment;
use tertulia::domain::vote::Vote;
use tertulia::settings::Settings;

/// A room with companions and people who write quickly.
pub struct Room {
    pub conversation: Conversation,
    settings: Settings,
    channel: ChannelId,
    policies: BTreeMap<CompanionId, InterjectionPolicy>,
    ledger: Ledger,
    template: Message,
    newest: Seq,
    now: Moment,
    /// All journaled events, if they are recorded.
    pub record: Option<Vec<Recorded>>,
}

impl Room {
    /// A room with this number of companions. Each considers its first interjection after this number of messages.
    pub fn new(companions: usize, starting_interval: u64) -> Self {
        Self::beginning(companions, starting_interval, Moment::from_micros(1_000_000), None)
    }

    /// The same, with all events recorded. The first one happens at `now`.
    pub fn on_record(companions: usize, starting_interval: u64, now: Moment) -> Self {
        Self::beginning(companions, starting_interval, now, Some(Vec::new()))
    }

    fn beginning(companions: usize, starting_interval: u64, now: Moment, record: Option<Vec<Recorded>>) -> Self {
        let generous = serde_json::json!({ "gate": {
            "addresses_per_minute": u32::MAX, "evaluations_per_hour": u32::MAX, "guild_evaluations_per_hour": u32::MAX,
        } });
        let policy = InterjectionPolicy {
            level: tertulia::settings::companion::Interjection::Average,
            starting_interval,
            text_lull_timeout: Duration::from_secs(10),
            voice_lull_timeout: Duration::from_secs(5),
            quiet_hours: [tertulia::domain::policy::quiet_hours::QuietHours::Never; 2],
            starts_after: None,
            max_turns: None,
            repetition: true,
        };
        let ids: Vec<CompanionId> = (0..companions).map(|number| format!("name{number}").into()).collect();
        let mut room = Self {
            conversation: Conversation::default(),
            settings: Settings::overlay(generous).expect("these settings are fine"),
            channel: "console:bench".into(),
            policies: ids.iter().map(|id| (id.clone(), policy)).collect(),
            ledger: Ledger::default(),
            template: message("I thought that the bread would be done by now, but nobody opened the oven since"),
            newest: Seq::NONE,
            now,
            record,
        };
        for companion in ids {
            let joined = room.recorded(Event::Joined { companion, external: false });
            room.handle_event(joined);
        }
        room
    }

    pub fn companion(&self, number: usize) -> CompanionId {
        self.policies.keys().nth(number % self.policies.len()).cloned().expect("the room has companions")
    }

    /// Handles a message, and declines all its questions at once. Returns the number of decisions.
    pub fn handle_message(&mut self, called: Option<&CompanionId>) -> usize {
        let said = self.said(called);
        self.handle_event(said)
    }

    /// The next message on record.
    pub fn said(&mut self, called: Option<&CompanionId>) -> Box<Recorded> {
        let mut message = self.template.clone();
        message.address = Address { companions: called.into_iter().cloned().collect(), ..Address::default() };
        // Short enough that there is no lull, and long enough that the windows of budgets expire.
        self.now = self.now + Duration::from_secs(1);
        self.recorded(Event::Said { message, reply_to: None, reply: None, said_at: None })
    }

    fn recorded(&mut self, event: Event) -> Box<Recorded> {
        self.newest = self.newest.next();
        Box::new(Recorded { seq: self.newest, at: self.now, handled: self.newest, turn: None, event })
    }

    fn handle_event(&mut self, recorded: Box<Recorded>) -> usize {
        if let Some(record) = &mut self.record {
            record.push(Recorded::clone(&recorded));
        }
        let mut asked = self.step(Input::Inbound(recorded));
        let mut decisions = 0;
        while let Some(ticket) = asked.pop() {
            decisions += 1;
            let vote = Vote {
                verdict: Verdict::No,
                why: None,
                importance: 2.0,
                selected: false,
                closing: Stage::None,
                mood: 0.0,
                risk: None,
            };
            asked.extend(self.step(Input::Answered { ticket, vote, call: None }));
        }
        decisions
    }

    /// Runs a step, and numbers the new events as the writer does.
    fn step(&mut self, input: Input) -> Vec<Ticket> {
        let mut world = World {
            channel: &self.channel,
            rules: Rules::from(&self.settings),
            policies: &self.policies,
            jitter: &mut || 0,
            roll: &mut || None,
            turn: &mut || TurnId(0),
            ledger: &mut self.ledger,
            summary: None,
            notes: None,
            tokens_per_day: None,
            is_unpostable: false,
        };
        let mut asked = Vec::new();
        for output in self.conversation.step(self.now, input, &mut world) {
            if let Output::Made(made) = output {
                let Made { handled, turn, event, .. } = *made;
                self.newest = self.newest.next();
                if let Event::Evaluated(evaluated) = &event {
                    asked.push(evaluated.ticket);
                }
                if let Some(record) = &mut self.record {
                    record.push(Recorded { seq: self.newest, at: self.now, handled, turn, event });
                }
            }
        }
        asked
    }
}

/// A message from Ana.
pub fn message(text: &str) -> Message {
    let ana: Arc<str> = "Ana".into();
    Message::new(Author { id: ana.clone(), name: ana, role: Role::Person }, text.into())
}
