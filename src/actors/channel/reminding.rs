//! Announces reminders that are due by the machine's clock, and posts those that no companion acknowledges (docs/design/reminders.md).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;
use tokio::time::sleep;

use super::State;
use super::channel_context::ChannelContext;
use super::post_commit::PostCommitAction;
use crate::actors::companion::tools;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::domain::conversation::{Conversation, Input};
use crate::domain::event::Event;
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::message::{Address, Message, Role};
use crate::domain::moment::Moment;
use crate::domain::reminders::{KIND, NewReminder, NotSet, Reading, Reminder, Wanted};
use crate::domain::tools::{ToolCalled, Who};
use crate::domain::window::Entry;
use crate::journal::reader::Reader;
use crate::ports::chat_platform::insist;
use crate::telemetry::operations::reminded;

/// The pause after a reminder could not be posted on a platform.
const PAUSE: Duration = Duration::from_secs(600);
/// After this time a reminder that cannot be posted is given up.
const MOST_TRIED: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub(super) struct Reminding {
    /// The reminders whose event is on its way to the journal.
    announced: BTreeSet<u64>,
    /// The tasks that post reminders without a companion.
    posted: BTreeMap<u64, OwnedTask>,
}

impl Reminding {
    /// When the next reminder must be announced, by the machine's clock.
    pub(super) fn next_due(&self, conversation: &Conversation) -> Option<Moment> {
        conversation.reminders().next_due(|number| self.announced.contains(&number))
    }
}

impl State {
    /// Sets a reminder. It is returned once it is committed.
    pub(super) fn set_reminder(&mut self, wanted: NewReminder, reply: RpcReplyPort<Result<(Reminder, Reading), NotSet>>) {
        if self.restoring.is_some() {
            // Dropped, so that the caller tries again.
            return;
        }
        let planned = self.planned(wanted);
        let is_set = planned.is_ok();
        if let Ok((reminder, _)) = &planned {
            self.step(Input::Remind(Box::new(reminder.clone())));
        }
        // The caller may have stopped waiting.
        let tell = move || drop(reply.send(planned));
        match self.journal.newest_actions().filter(|_| is_set) {
            Some(actions) => actions.push(PostCommitAction::Confirm(Box::new(tell))),
            None => tell(),
        }
    }

    fn planned(&self, wanted: NewReminder) -> Result<(Reminder, Reading), NotSet> {
        let settings = self.channel.context.in_force();
        let guild = settings.prompt.zone_of(&self.channel.key.guild);
        self.conversation.reminders().planned(wanted, self.channel.machine_time(), guild)
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
                let asked = self.asking(called, person);
                let (of, companion) = (self.conversation.person(person), Some(called.companion.clone()));
                let wanted = NewReminder { of, text, at, in_minutes, zone, companion, asked };
                let (reminder, reading) = self.planned(wanted).map_err(|not_set| not_set.to_string())?;
                let shift = match reading {
                    Reading::Plain => "",
                    Reading::Skipped => {
                        "; clocks skip the wanted time on that day, so it is later by as much as they are put forward"
                    }
                    Reading::Twice => "; clocks show that time twice on that day, and the first one counts",
                };
                let answer = format!("reminder {} is set for {}{shift}", reminder.number, reminder.local(guild));
                effects.push(Event::ReminderSet(Box::new(reminder)));
                Ok(answer)
            }
        }
    }

    /// The messages of a person that a call answers. Of a confirmed call, whose reply is over: those that the model was shown, since the companion's
    /// statement before them.
    fn asking(&self, called: &ToolCalled, person: &PersonId) -> Vec<Seq> {
        let window = self.conversation.window();
        let is_by = |entry: &Entry| entry.message.from.role == Role::Person && *entry.message.from.id == *person.as_str();
        let owed = self.conversation.turns().owed_reply(called.ticket);
        let answered = owed.into_iter().flat_map(|owed| &owed.messages).copied();
        let asking: Vec<_> = answered.filter(|seq| window.get(*seq).is_some_and(is_by)).collect();
        if !asking.is_empty() {
            return asking;
        }
        let is_later = |entry: &&Entry| called.shown.is_some_and(|(_, last)| entry.seq > last);
        let since = window.entries().rev().skip_while(is_later).take_while(|entry| !entry.message.is_by(&called.companion));
        since.filter(|entry| is_by(entry)).map(|entry| entry.seq).collect()
    }

    /// Announces the reminders that are due, and posts those that no companion will acknowledge. Each is journaled at most once: a restarted channel
    /// first waits for the requests of its predecessor.
    pub(super) fn follow_reminders(&mut self) {
        let (now, reminders) = (self.channel.machine_time(), self.conversation.reminders());
        self.reminding.announced.retain(|number| reminders.open().any(|one| one.number == *number));
        self.reminding.posted.retain(|number, _| reminders.announced().any(|(_, one)| one.number == *number));
        for reminder in reminders.open().filter(|reminder| reminder.due <= now) {
            if self.reminding.announced.insert(reminder.number) {
                reminded(&self.channel.context.recorder, self.channel.key.channel.as_str(), reminder, now);
                let address = Address { companions: reminder.companion.iter().cloned().collect(), ..Address::default() };
                journal(Message { address, ..message(reminder, "reminders.due", &self.channel) }, &self.channel);
            }
        }
        for reminder in self.conversation.unacknowledged_reminders() {
            // Like its events, it ends with the channel. The next one posts it again.
            self.reminding.posted.entry(reminder.number).or_insert_with(|| {
                let posting = tokio::spawn(post(reminder.clone(), self.channel.clone()));
                posting.into()
            });
        }
    }

    /// Journals a reminder that was posted, unless it was cancelled or erased meanwhile.
    pub(super) fn reminder_posted(&self, number: u64) {
        if let Some((_, reminder)) = self.conversation.reminders().announced().find(|(_, one)| one.number == number) {
            journal(plain(reminder, &self.channel), &self.channel);
        }
    }
}

/// Posts a reminder as a sentence of the server. On a platform, it tries that for a day.
async fn post(reminder: Reminder, channel: ChannelContext) {
    let number = reminder.number;
    tracing::info!(channel = %channel.shown(), number, "no companion acknowledges a reminder; the server posts it");
    loop {
        let text = plain(&reminder, &channel).text;
        let nonce = format!("{}/reminder/{number}", channel.key.channel);
        let posted = match channel.platform() {
            Some(platform) => insist(|| platform.announce(&channel.key.channel, &text, &nonce)).await,
            None => Ok(()),
        };
        let Err(error) = posted else { return drop(channel.actor.cast(ChannelMessage::ReminderPosted(number))) };
        tracing::warn!(channel = %channel.shown(), number, %error, "a reminder could not be posted; it is tried again in ten minutes");
        if channel.machine_time().since(reminder.due) > MOST_TRIED {
            tracing::error!(channel = %channel.shown(), number, "a reminder is given up, because it could not be posted for a day");
            return channel.accept(Event::RemindersCancelled { reminders: vec![number], erased: false }, None);
        }
        sleep(PAUSE).await;
    }
}

/// The message that the server posts in place of a companion's words.
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
