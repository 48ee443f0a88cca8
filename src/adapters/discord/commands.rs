//! `/tertulia`: what people ask for by slash commands, and what they are answered.
//!
//! * `registered`: what is registered with Discord, and every text of it; `registering` sees to it that it is.
//! * `interaction`: who asks what, and where.
//! * `crowd`: how many are seen to at once, and who was seen before.
//! * `answering`: the way back, within three seconds.
//! * `choosing`: which companion is meant; what is offered while somebody types.
//! * `memberships`: who lives in a channel, comes, goes, talks how much, and is paused.
//! * `persons`: what people decide about themselves.
//! * `saying`: what people say to companions by a command.
//! * `status`, `why`: what is told of a channel.
//! * `words`: sentences that several share.

mod answering;
mod choosing;
mod crowd;
#[cfg(test)]
pub(crate) mod fuzz;
mod interaction;
mod members;
mod persons;
pub(super) mod registered;
mod registering;
mod saying;
mod status;
mod why;
mod words;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use self::answering::Reached;
use self::crowd::{Place, Places, Seen};
use self::interaction::{Command, Handle, Interaction, Typing, What, Where};
use self::saying::Questions;
use super::platform::Discord;
use super::snowflake::Snowflake;
use crate::domain::id::CompanionId;
use crate::ports::backend::room::{Room, RoomId};
use crate::ports::backend::{Backend, Refused};
use crate::ports::inbound_events::InboundEvents;
use crate::ports::membership::MembershipPort;
use crate::ports::opt_out::OptOut;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;

/// Commands that are carried out at once.
const AT_ONCE: usize = 64;
/// Those of one guild.
const AT_ONCE_IN_A_GUILD: usize = 8;
/// Names that are completed at once: a question for every key that is pressed.
const TYPING_AT_ONCE: usize = 64;
/// Those that are told to come back later, at once; of more there is only a count.
const TURNED_AWAY_AT_ONCE: usize = 256;
/// What takes longer is answered later: half of what Discord waits for is left for the way.
const ANSWERED_LATER: Duration = Duration::from_millis(1_500);
/// Choices that take longer are none; the next key asks anew.
const CHOICES_LATER: Duration = Duration::from_secs(2);
/// A command may take so long: an answer can be given for fifteen minutes.
const LONGEST: Duration = Duration::from_secs(600);
/// An interaction older than this was told again after a connection was lost, and may be past answering: it is answered before it is done.
const FRESH: Duration = Duration::from_secs(2);

/// The slash commands of one bot. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Commands(Arc<Desk>);

struct Desk {
    discord: Arc<Discord>,
    backend: Arc<dyn Backend>,
    company: Arc<dyn MembershipPort>,
    ignoring: Arc<dyn OptOut>,
    inbound_events: Arc<dyn InboundEvents>,
    /// Messages about which somebody wants a companion asked.
    questions: Questions,
    /// Who answers in direct messages; none: the first one.
    direct_companions: Option<Vec<CompanionId>>,
    is_registering: AtomicBool,
    register_again: Notify,
    commands: Places,
    typing: Places,
    turned_away: Places,
    seen: Mutex<Seen>,
    instruments: Instruments,
}

/// What a command came to.
#[derive(Debug)]
enum Said {
    /// It was done, or told.
    Done(String),
    /// It may not be, or cannot: why.
    Refused(String),
    /// Something is in the way that should not be.
    Failed(String),
}

impl Commands {
    /// The commands as they work on this core. Nothing is asked or registered yet.
    pub fn new(
        discord: Arc<Discord>,
        backend: Arc<dyn Backend>,
        company: Arc<dyn MembershipPort>,
        ignoring: Arc<dyn OptOut>,
        inbound_events: Arc<dyn InboundEvents>,
        settings: &Settings,
        instruments: Instruments,
    ) -> Self {
        Self(Arc::new(Desk {
            discord,
            backend,
            company,
            ignoring,
            inbound_events,
            questions: Questions::default(),
            direct_companions: settings.direct_companions.clone(),
            is_registering: AtomicBool::new(false),
            register_again: Notify::new(),
            commands: Places::new(AT_ONCE, AT_ONCE_IN_A_GUILD),
            typing: Places::new(TYPING_AT_ONCE, AT_ONCE_IN_A_GUILD),
            turned_away: Places::new(TURNED_AWAY_AT_ONCE, TURNED_AWAY_AT_ONCE / 2),
            seen: Mutex::default(),
            instruments,
        }))
    }

    /// A connection is ready: the command is registered, if that did not happen yet. Returns at once, and is in nobody's way; must be called
    /// within a Tokio runtime.
    pub fn ready(&self) {
        Desk::register(&self.0);
    }

    /// Takes what `INTERACTION_CREATE` tells. Returns at once; must be called within a Tokio runtime. The same interaction twice is answered
    /// once.
    #[expect(clippy::boxed_local, reason = "it is handed over as it came from the connection")]
    pub fn take(&self, interaction: Box<RawValue>) {
        let since = Instant::now();
        let desk = &self.0;
        let interaction = match interaction::read(interaction.get()) {
            Ok(interaction) => interaction,
            Err(error) => {
                tracing::debug!(%error, "an interaction is left alone");
                return desk.count(OTHER, "unreadable");
            }
        };
        let label = interaction.label();
        if !desk.seen.lock().unwrap_or_else(PoisonError::into_inner).is_new(interaction.handle.id) {
            return desk.count(label, "repeated");
        }
        let guild = interaction.here.guild_id();
        let places = if matches!(interaction.what, What::Typing(_)) { &desk.typing } else { &desk.commands };
        if let Some(place) = places.take(&guild) {
            tokio::spawn(Arc::clone(desk).see_to(interaction, since, place));
        } else {
            desk.count(label, "busy");
            if let Some(place) = desk.turned_away.take(&guild) {
                tokio::spawn(Arc::clone(desk).turn_away(interaction, since, place));
            }
        }
    }
}

/// How interactions are measured that are no command of ours.
const OTHER: &str = "other";

impl Interaction {
    const fn label(&self) -> &'static str {
        match &self.what {
            What::Command(command) => command.label(),
            What::Ask(_) | What::Choose { .. } => "ask",
            What::Typing(_) => "typing",
            What::Unknown { .. } => OTHER,
        }
    }
}

impl Desk {
    async fn see_to(self: Arc<Self>, interaction: Interaction, since: Instant, _place: Place) {
        let label = interaction.label();
        let Interaction { handle, person, here, what } = interaction;
        let outcome = match what {
            What::Command(Command::Say { companion, text }) => {
                let words = self.words_for(&companion, &text, &here, &person);
                self.pass_on(&handle, since, label, &here, &person, words).await
            }
            What::Ask(message) => {
                let question = self.question(handle.id, &message, &here, &person);
                self.pass_on(&handle, since, label, &here, &person, question).await
            }
            What::Choose { question, companion } => {
                let chosen = self.chosen(question, &companion, &here, &person);
                self.pass_on(&handle, since, label, &here, &person, chosen).await
            }
            What::Command(command) => self.carry_out(&handle, since, label, self.caught(command, &here, person.id)).await,
            What::Typing(typing) => self.complete(&handle, since, label, &typing, &here).await,
            What::Unknown { choices } => {
                let body = if choices { answering::choices(&[]) } else { answering::message(words::UNKNOWN) };
                self.reach(&handle, &body, since, label).await.map_or_else(|missed| missed, |()| "refused")
            }
        };
        self.count(label, outcome);
    }

    async fn turn_away(self: Arc<Self>, interaction: Interaction, since: Instant, _place: Place) {
        let wants_choices = matches!(interaction.what, What::Typing(_) | What::Unknown { choices: true });
        let body = if wants_choices { answering::choices(&[]) } else { answering::message(words::BUSY) };
        // Whether it arrives or not, it is counted already.
        self.answer(&interaction.handle, &body, since).await;
    }

    /// Does something and answers with what it came to: at once, or later if it takes its time.
    async fn carry_out(
        &self,
        handle: &Handle,
        since: Instant,
        label: &'static str,
        work: impl Future<Output = Said>,
    ) -> &'static str {
        let work = async { timeout(LONGEST, work).await.unwrap_or_else(|_| Said::Failed(words::TOO_LONG.to_owned())) };
        tokio::pin!(work);
        if self.discord.now().since(handle.id.time()) < FRESH {
            if let Ok(said) = timeout_at(since + ANSWERED_LATER, work.as_mut()).await {
                let body = answering::message(said.text());
                return self.reach(handle, &body, since, label).await.map_or_else(|missed| missed, |()| said.outcome());
            }
            // What was begun is done, whether they hear of it or not.
            let to_come = answering::to_come();
            let (reached, said) = tokio::join!(self.reach(handle, &to_come, since, label), work);
            return self.at_last(handle, reached, &said).await;
        }
        // Whoever has given up waiting does not expect it to be done any more.
        let reached = self.reach(handle, &answering::to_come(), since, label).await;
        if let Err(missed) = reached {
            return missed;
        }
        let said = work.await;
        self.at_last(handle, reached, &said).await
    }

    async fn at_last(&self, handle: &Handle, reached: Result<(), &'static str>, said: &Said) -> &'static str {
        match reached {
            Err(missed) => missed,
            Ok(()) if self.answer_at_last(handle, said.text()).await => said.outcome(),
            Ok(()) => "unanswered",
        }
    }

    /// Gives the first answer, and measures how long it took. Otherwise: the outcome.
    async fn reach(&self, handle: &Handle, body: &Value, since: Instant, label: &'static str) -> Result<(), &'static str> {
        match self.answer(handle, body, since).await {
            Reached::Yes => {
                self.instruments.discord_command_duration.record(since.elapsed().as_secs_f64(), [label]);
                Ok(())
            }
            Reached::Answered => Err("repeated"),
            Reached::No => Err("unanswered"),
        }
    }

    async fn complete(
        &self,
        handle: &Handle,
        since: Instant,
        label: &'static str,
        typing: &Typing,
        here: &Where,
    ) -> &'static str {
        let choices = timeout_at(since + CHOICES_LATER, self.choices(typing, here)).await.unwrap_or_default();
        let reached = self.reach(handle, &answering::choices(&choices), since, label).await;
        reached.map_or_else(|missed| missed, |()| "done")
    }

    /// Does what a command asks for. A panic is an answer, too.
    async fn caught(&self, command: Command, here: &Where, person: Snowflake) -> Said {
        unless_it_panics(self.obey(command, here, person)).await.map_or_else(|said| said, Said::Done)
    }

    async fn obey(&self, command: Command, here: &Where, person: Snowflake) -> Result<String, Said> {
        match command {
            Command::Status { companion } => self.status(companion.as_deref(), here, person).await,
            Command::Join { companion, to } => self.join(&companion, to.as_ref().unwrap_or(here), here, person).await,
            Command::Leave { companion, from } => self.leave(&companion, from.as_ref().unwrap_or(here), here, person).await,
            Command::Talkativeness { level, companion } => self.policy(level, companion.as_deref(), here, person).await,
            Command::Pause { companion, on } => self.pause(on, companion.as_deref(), here, person).await,
            Command::Why { companion } => self.why(companion.as_deref(), here).await,
            Command::ForgetMe { sure } => self.forget(sure, here, person).await,
            Command::IgnoreMe { on } => self.ignore(on, here, person).await,
            // What is said is passed on, and needs no other answer.
            Command::Say { .. } | Command::Help => Ok(words::HELP.to_owned()),
        }
    }

    /// The room that a channel is; none: nobody ever lived there.
    async fn room(&self, at: &Where) -> Result<Option<Room>, Said> {
        self.room_of(at, at.channel).await
    }

    /// What a thread or a direct message becomes as soon as something is said in it: the companions of the channel that the thread is in, or
    /// those of the settings. None: nothing of itself.
    async fn would_be(&self, at: &Where) -> Result<Option<Room>, Said> {
        if let Some(parent) = at.parent {
            return self.room_of(at, parent).await;
        }
        let Some(id) = RoomId::of(&at.channel.channel()).filter(|_| at.is_direct()) else { return Ok(None) };
        let all = self.backend.companions().await?.companions;
        let companions: Vec<_> = match &self.direct_companions {
            Some(ids) => all.into_iter().filter(|one| ids.contains(&one.id)).map(choosing::as_member).collect(),
            None => all.into_iter().take(1).map(choosing::as_member).collect(),
        };
        Ok(Some(Room { id, guild: at.guild_id(), companions, paused: false, last_at: None, inherits_from: None, title: None }))
    }

    async fn room_of(&self, at: &Where, channel: Snowflake) -> Result<Option<Room>, Said> {
        let Some(id) = RoomId::of(&channel.channel()) else { return Ok(None) };
        match self.backend.room(&id).await {
            // Nothing of another guild, whatever an interaction says.
            Ok(room) if room.guild == at.guild_id() => Ok(Some(room)),
            Ok(_) => {
                tracing::error!(%channel, guild = %at.guild_id(), "an interaction names a channel of another guild");
                Ok(None)
            }
            Err(Refused::NotFound(_)) => Ok(None),
            Err(refused) => Err(refused.into()),
        }
    }

    fn count(&self, label: &'static str, outcome: &'static str) {
        self.instruments.discord_commands.add(1, [label, outcome]);
    }
}

/// What comes of something; a panic is an answer, too.
async fn unless_it_panics<T>(work: impl Future<Output = Result<T, Said>>) -> Result<T, Said> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a slash command panicked; whoever used it was told so");
        Err(Said::Failed(words::BROKEN.to_owned()))
    })
}

impl Said {
    fn text(&self) -> &str {
        match self {
            Self::Done(text) | Self::Refused(text) | Self::Failed(text) => text,
        }
    }

    const fn outcome(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }
}

impl From<Refused> for Said {
    fn from(refused: Refused) -> Self {
        let text = words::sorry(&refused);
        match refused {
            Refused::Unavailable { .. } | Refused::Damaged(_) | Refused::Broken(_) => Self::Failed(text),
            _ => Self::Refused(text),
        }
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commands")
    }
}
