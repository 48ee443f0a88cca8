//! Announces reminders that are due by the machine's clock, and posts those that no companion acknowledges (docs/design/reminders.md).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;

use super::State;
use super::channel_context::ChannelContext;
use super::post_commit::PostCommitAction;
use crate::actors::companion::tools;
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::conversation::{Conversation, Input};
use crate::domain::event::Event;
use crate::domain::id::{PersonId, Ticket};
use crate::domain::message::{Address, Message};
use crate::domain::moment::Moment;
use crate::domain::policy::zone::Zone;
use crate::domain::reminders::{KIND, NotSet, Reading, Reminder, Wanted, due};
use crate::domain::tools::{ToolCalled, Who};
use crate::journal::reader::Reader;
use crate::ports::chat_platform::insist;
use crate::telemetry::operations::reminded;

/// The pause after a reminder could not be posted on a platform.
const PAUSE: Duration = Duration::from_secs(600);
/// After this time a reminder that cannot be posted is given up.
const MOST_TRIED: Duration = Duration::from_secs(24 * 60 * 60);

/// The reminders whose event is on its way to the journal (false), and those that are being posted plainly (true).
#[derive(Default)]
pub(super) struct Reminding(BTreeSet<(u64, bool)>);

impl Reminding {
    /// When the next reminder must be announced, by the machine's clock.
    pub(super) fn next_due(&self, conversation: &Conversation) -> Option<Moment> {
        conversation.reminders().next_due(|number| self.0.contains(&(number, false)))
    }
}

impl State {
    /// Sets a reminder. Its number is returned once it is committed.
    pub(super) fn set_reminder(&mut self, reminder: Reminder, reply: RpcReplyPort<Result<u64, NotSet>>) {
        if self.restoring.is_some() {
            // Dropped, so that the caller tries again.
            return;
        }
        if let Err(not_set) = self.conversation.reminders().check(&PersonId::from(&*reminder.of.id)) {
            // The caller may have stopped waiting.
            return drop(reply.send(Err(not_set)));
        }
        self.step(Input::Remind(Box::new(reminder)));
        let number = self.conversation.reminders().newest();
        if let Some(actions) = self.journal.newest_actions() {
            actions.push(PostCommitAction::ReminderSet { number, reply });
        }
    }

    /// Looks up what a call of the tool `remind` needs from the store. The channel then makes it.
    pub(super) fn begin_reminder_call(&self, call: Ticket, cause: Option<&Who>) {
        let (channel, person) = (self.channel.clone(), cause.map(|cause| cause.person.clone()));
        tokio::spawn(async move {
            let reader = Reader::new(&*channel.context.store);
            let zone = match person {
                Some(person) => reader.time_zone(&channel.key.guild, &person).await.unwrap_or_default(),
                None => None,
            };
            // A channel that has stopped makes the call again when it restarts.
            let _ = channel.actor.cast(ChannelMessage::ReminderCall { call, zone });
        });
    }

    /// Makes a call of the tool `remind`. A reminder is journaled with the end of its call, so it is set once.
    pub(super) fn reminder_call(&mut self, call: Ticket, zone: Option<Arc<str>>) {
        let Some(known) = self.conversation.call(call).filter(|known| known.is_running()).cloned() else { return };
        let mut effects = Vec::new();
        let answer = match &known.called.cause {
            Some(Who { person, .. }) => self.remind(&known.called, person, zone, &mut effects),
            None => Err("nobody is known who asks for it".to_owned()),
        };
        let answer = tools::answered(answer, None);
        self.step(Input::CallEnded { call, answer, effects });
    }

    /// The answer to a call of the tool by this person, or what is wrong with it.
    fn remind(
        &self,
        called: &ToolCalled,
        person: &PersonId,
        zone: Option<Arc<str>>,
        effects: &mut Vec<Event>,
    ) -> Result<String, String> {
        let (settings, reminders) = (self.channel.context.in_force(), self.conversation.reminders());
        let guild = settings.prompt.zone_of(&self.channel.key.guild);
        let arguments = serde_json::from_str(&called.arguments).map_err(|_| "the arguments cannot be read".to_owned())?;
        let own = || reminders.open().filter(|one| one.is_of(person));
        match Wanted::read(&arguments)? {
            Wanted::List => {
                let lines: Vec<_> = own().map(|one| format!("{}: {}, {}", one.number, one.local(guild), one.text)).collect();
                Ok(if lines.is_empty() { "no reminders are open".to_owned() } else { lines.join("\n") })
            }
            Wanted::Cancel(number) => {
                own()
                    .find(|one| one.number == number)
                    .ok_or_else(|| format!("there is no open reminder {number} of this person"))?;
                self.channel.accept(Event::RemindersCancelled { reminders: vec![number], erased: false }, None);
                Ok(format!("reminder {number} is cancelled"))
            }
            Wanted::Set { text, at, in_minutes } => {
                reminders.check(person).map_err(|not_set| not_set.to_string())?;
                let own_zone = zone.as_deref().and_then(Zone::parse);
                let own_zone = own_zone.as_ref().map_or(guild, Zone::time_zone);
                let (due, reading) = due(at.as_deref(), in_minutes, self.channel.machine_time(), own_zone)
                    .map_err(|not_set| not_set.to_string())?;
                let asked = self.conversation.turns().owed_reply(called.ticket).and_then(|owed| owed.message);
                let (number, companion) = (reminders.newest() + 1, Some(called.companion.clone()));
                let reminder = Reminder { number, of: self.conversation.person(person), text, due, zone, asked, companion };
                let shift = match reading {
                    Reading::Plain => "",
                    Reading::Skipped => {
                        "; clocks skip the wanted time on that day, so it is later by as much as they are put forward"
                    }
                    Reading::Twice => "; clocks show that time twice on that day, and the first one counts",
                };
                let answer = format!("reminder {number} is set for {}{shift}", reminder.local(guild));
                effects.push(Event::ReminderSet(Box::new(reminder)));
                Ok(answer)
            }
        }
    }

    /// Announces the reminders that are due, and posts those that no companion will acknowledge. Each is journaled at most once: a restarted channel
    /// first waits for the requests of its predecessor.
    pub(super) fn follow_reminders(&mut self) {
        let (now, reminders) = (self.channel.machine_time(), self.conversation.reminders());
        let (open, announced): (BTreeSet<_>, BTreeSet<_>) =
            (reminders.open().map(|one| one.number).collect(), reminders.announced().map(|(_, one)| one.number).collect());
        self.reminding.0.retain(|(number, is_plain)| if *is_plain { announced.contains(number) } else { open.contains(number) });
        for reminder in reminders.open().filter(|reminder| reminder.due <= now) {
            if self.reminding.0.insert((reminder.number, false)) {
                reminded(&self.channel.context.recorder, self.channel.key.channel.as_str(), reminder, now);
                let address = Address { companions: reminder.companion.iter().cloned().collect(), ..Address::default() };
                journal(Message { address, ..message(reminder, "reminders.due", &self.channel) }, &self.channel);
            }
        }
        for reminder in self.conversation.unacknowledged_reminders() {
            if self.reminding.0.insert((reminder.number, true)) {
                post(reminder, &self.channel);
            }
        }
    }

    /// Handles the end of an attempt to post a reminder on a platform.
    pub(super) fn reminder_posted(&mut self, number: u64, is_posted: bool) {
        let announced = self.conversation.reminders().announced().find(|(_, reminder)| reminder.number == number);
        let Some(reminder) = announced.map(|(_, reminder)| reminder) else { return };
        if is_posted {
            return journal(plain(reminder, &self.channel), &self.channel);
        }
        if self.channel.machine_time().since(reminder.due) > MOST_TRIED {
            tracing::error!(channel = %self.channel.shown(), number, "a reminder is given up, because it could not be posted for a day");
            return self.channel.accept(Event::RemindersCancelled { reminders: vec![number], erased: false }, None);
        }
        let retry = move || ChannelMessage::RetryReminder(number);
        drop(self.channel.actor.send_after(PAUSE, retry));
    }

    pub(super) fn retry_reminder(&mut self, number: u64) {
        self.reminding.0.remove(&(number, true));
        self.follow_reminders();
    }
}

/// Posts a reminder as a sentence of the server.
fn post(reminder: &Reminder, channel: &ChannelContext) {
    let message = plain(reminder, channel);
    let number = reminder.number;
    tracing::info!(channel = %channel.shown(), number, "no companion acknowledges a reminder; the server posts it");
    let Some(platform) = channel.platform() else { return journal(message, channel) };
    let channel = channel.clone();
    tokio::spawn(async move {
        let nonce = format!("{}/reminder/{number}", channel.key.channel);
        let posted = insist(|| platform.announce(&channel.key.channel, &message.text, &nonce)).await;
        if let Err(error) = &posted {
            tracing::warn!(channel = %channel.shown(), number, %error, "a reminder could not be posted; it is tried again in ten minutes");
        }
        // A channel that has stopped posts it again when it restarts.
        let _ = channel.actor.cast(ChannelMessage::ReminderPosted { number, is_posted: posted.is_ok() });
    });
}

fn plain(reminder: &Reminder, channel: &ChannelContext) -> Message {
    Message { background: true, ..message(reminder, "reminders.plain", channel) }
}

/// The message that announces a reminder, in the language of the channel.
fn message(reminder: &Reminder, key: &str, channel: &ChannelContext) -> Message {
    let (settings, language) = (channel.context.in_force(), channel.language());
    let mut text = language.say(key, &[("who", &reminder.of.name), ("text", &reminder.text)]);
    if let Some(time) = reminder.late(channel.machine_time(), settings.prompt.zone_of(&channel.key.guild)) {
        text = format!("{text} {}", language.say("reminders.late", &[("time", &time)]));
    }
    let (kind, number) = (Some(KIND.into()), Some(reminder.number));
    Message { kind, reminder: number, ..Message::new(reminder.of.clone(), text.into()) }
}

fn journal(message: Message, channel: &ChannelContext) {
    channel.accept(Event::Said { message, reply_to: None, reply: None, said_at: None }, None);
}
