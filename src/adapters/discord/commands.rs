//! Handles the slash command `/tertulia`.
//!
//! * `registered`: the commands as registered with Discord, with all their texts; `registering` registers them.
//! * `interaction`: parses interactions.
//! * `recent`: detects repeated interactions.
//! * `at_hand`: stops and replaces replies, clears a channel, explains and forgets single messages.
//! * `answering`: sends answers, within three seconds.
//! * `choosing`: finds companions by name, and answers autocomplete requests.
//! * `members`: adds and removes companions, sets their interjection level, and pauses them.
//! * `setup`: leads managers through these, with the buttons and menus of `menus`; `roles`: who may address companions.
//! * `profiles`: shows companions. `own`: companions that a server's managers make.
//! * `persons`: the commands `forget me`, `ignore me` and `export-me`.
//! * `saying`: relays messages from users to companions.
//! * `status`, `why`: describe a channel. `recall`: searches its messages. `voice`: calls.
//! * `text`: texts in the language of their reader. `words`: those shared by several answers. `quoting`: text of other people.

mod answering;
mod at_hand;
mod choosing;
#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
mod interaction;
mod members;
mod memory;
pub(super) mod menus;
mod own;
mod persons;
mod profiles;
mod quoting;
mod recall;
mod recent;
pub(super) mod registered;
mod registering;
mod roles;
mod saying;
mod setup;
mod status;
pub(crate) mod text;
mod voice;
mod why;
pub(super) mod words;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use self::answering::FirstAnswer;
use self::interaction::{Action, ChannelContext, Command, Handle, Interaction, Person};
use self::menus::SetupRequest;
use self::recent::RecentInteractions;
use self::saying::Questions;
use self::text::Text;
use self::voice::unanswered;
use super::calls::Calls;
use super::check::invitation;
use super::platform::Discord;
use super::rest::{Failed, File, Request};
use super::snowflake::Snowflake;
use crate::adapters::slots::{Slot, Slots};
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::room_words::RoomWords;
use crate::ports::backend::room::{Room, RoomId, VoiceNotes};
use crate::ports::backend::{Backend, Refused};
use crate::ports::companion_setup::CompanionSetup;
use crate::ports::inbound_events::InboundEvents;
use crate::ports::opt_out::OptOut;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;
use crate::texts::Language;

/// Commands in progress, for all guilds.
const AT_ONCE: usize = 64;
/// Commands in progress for one guild.
const AT_ONCE_IN_A_GUILD: usize = 8;
/// Exported files in memory.
const FILES_AT_ONCE: usize = 4;
/// Autocomplete requests in progress. Discord sends one per keystroke.
const TYPING_AT_ONCE: usize = 64;
/// Rejections in progress. Further rejected interactions are counted and get no answer.
const REJECTIONS_AT_ONCE: usize = 256;
/// If a command takes longer, a deferred response is sent first. Half of the time that Discord waits is left for the network.
const ANSWERED_LATER: Duration = Duration::from_millis(1_500);
/// If choices take longer, they are not sent. The next keystroke sends a new request.
const CHOICES_LATER: Duration = Duration::from_secs(2);
/// The time limit of a command. Discord accepts an answer for fifteen minutes.
const LONGEST: Duration = Duration::from_secs(600);
/// Discord repeats interactions after a lost connection. An interaction older than this may be too late to answer, so a deferred response is sent
/// before the work begins.
const FRESH: Duration = Duration::from_secs(2);

/// The slash commands of one bot. Clones share their state.
#[derive(Clone)]
pub struct Commands(Arc<CommandHandler>);

struct CommandHandler {
    discord: Arc<Discord>,
    backend: Backend,
    opt_outs: Arc<dyn OptOut>,
    inbound_events: Arc<dyn InboundEvents>,
    /// `None`: there are no calls.
    calls: Option<Calls>,
    /// Messages that users want to ask a companion about. They wait until the user chooses the companion.
    questions: Questions,
    /// The companions of direct messages. `None`: the first companion.
    direct_companions: Option<Vec<CompanionId>>,
    /// Makes, changes and removes companions, once the server has started.
    companions: OnceLock<Arc<dyn CompanionSetup>>,
    /// How many companions of its own a guild may have.
    own_companions: u32,
    is_registering: AtomicBool,
    register_again: Notify,
    commands: Arc<Slots<GuildId>>,
    files: Arc<Slots<GuildId>>,
    typing: Arc<Slots<GuildId>>,
    rejections: Arc<Slots<GuildId>>,
    seen: Mutex<RecentInteractions>,
    instruments: Instruments,
}

/// An interaction that waits for its first answer.
#[derive(Clone, Copy)]
struct Pending<'a> {
    handle: &'a Handle,
    /// When it arrived.
    since: Instant,
    label: &'static str,
    /// Whether the answer replaces the message with the button or menu that was used.
    replaces: bool,
}

/// The text of an answer, by the outcome of the command.
enum Answer {
    Done(Text),
    /// Text and a file, with the slot that limits how many files are in memory.
    File {
        text: Text,
        file: File,
        _slot: Slot<GuildId>,
    },
    /// Asks for confirmation, with a button of this label. Its `custom_id` begins with `id`; the id of the interaction follows.
    Question {
        text: Text,
        button: Text,
        id: &'static str,
    },
    /// A message with embeds, or with rows of buttons and menus.
    Rich {
        text: Text,
        embeds: Vec<Value>,
        components: Vec<Value>,
    },
    /// A form to fill in. It must be the first answer; `too_late` is the text otherwise.
    Form {
        form: Value,
        too_late: Text,
    },
    /// The command is not allowed or not possible; the text says why.
    Refused(Text),
    /// The command failed because of an internal error.
    Failed(Text),
}

impl Commands {
    /// Creates the handler. It sends and registers nothing yet.
    pub fn new(
        discord: Arc<Discord>,
        backend: Backend,
        opt_outs: Arc<dyn OptOut>,
        inbound_events: Arc<dyn InboundEvents>,
        calls: Option<Calls>,
        settings: &Settings,
        instruments: Instruments,
    ) -> Self {
        Self(Arc::new(CommandHandler {
            discord,
            backend,
            opt_outs,
            inbound_events,
            calls,
            questions: Questions::default(),
            direct_companions: settings.direct_companions.clone(),
            companions: OnceLock::new(),
            own_companions: settings.own_companions,
            is_registering: AtomicBool::new(false),
            register_again: Notify::new(),
            commands: Slots::new(AT_ONCE, AT_ONCE_IN_A_GUILD),
            files: Slots::new(FILES_AT_ONCE, FILES_AT_ONCE / 2),
            typing: Slots::new(TYPING_AT_ONCE, AT_ONCE_IN_A_GUILD),
            rejections: Slots::new(REJECTIONS_AT_ONCE, REJECTIONS_AT_ONCE / 2),
            seen: Mutex::default(),
            instruments,
        }))
    }

    /// Sets what makes companions. Until then, servers' own companions cannot be made.
    pub fn set_companions(&self, companions: Arc<dyn CompanionSetup>) {
        // It is set once, at the start.
        let _ = self.0.companions.set(companions);
    }

    /// Starts the registration of the commands, unless it is done or in progress. Call this when a connection is ready. Returns at once; must be
    /// called within a Tokio runtime.
    pub fn ready(&self) {
        CommandHandler::register(&self.0);
    }

    /// Handles the data of `INTERACTION_CREATE`. Returns at once; must be called within a Tokio runtime. An interaction that arrives twice is
    /// answered once.
    #[expect(clippy::boxed_local, reason = "the connection passes it as received")]
    pub fn handle_interaction(&self, interaction: Box<RawValue>) {
        let since = Instant::now();
        let handler = &self.0;
        let interaction = match interaction::read(interaction.get()) {
            Ok(interaction) => interaction,
            Err(error) => {
                tracing::debug!(%error, "an interaction cannot be parsed and is ignored");
                return handler.count(OTHER, "unreadable");
            }
        };
        let label = interaction.label();
        if !handler.seen.lock().is_new(interaction.handle.id) {
            return handler.count(label, "repeated");
        }
        let guild = interaction.here.guild_id();
        let slots = if matches!(interaction.action, Action::Typing(_)) { &handler.typing } else { &handler.commands };
        if let Ok(slot) = slots.acquire(guild.clone()) {
            tokio::spawn(Arc::clone(handler).handle(interaction, since, slot));
        } else {
            handler.count(label, "busy");
            if let Ok(slot) = handler.rejections.acquire(guild) {
                tokio::spawn(Arc::clone(handler).reject(interaction, since, slot));
            }
        }
    }
}

/// The metric label of interactions that are not commands of ours.
const OTHER: &str = "other";

impl Interaction {
    const fn label(&self) -> &'static str {
        match &self.action {
            Action::Command(command) => command.label(),
            Action::Ask(_) | Action::Choose { .. } => "ask",
            Action::Help { .. } => "crisis",
            Action::Typing(_) => "typing",
            Action::Unknown { .. } => OTHER,
        }
    }
}

impl CommandHandler {
    async fn handle(self: Arc<Self>, interaction: Interaction, since: Instant, _slot: Slot<GuildId>) {
        let label = interaction.label();
        let Interaction { handle, person, here, action } = interaction;
        let replaces = matches!(action, Action::Command(Command::SetUp(SetupRequest::Step { .. })));
        let pending = Pending { handle: &handle, since, label, replaces };
        let outcome = match action {
            Action::Command(Command::Say { companion, text }) => {
                let message = self.prepare_message(&companion, &text, &here, &person, &handle.channel_language);
                self.relay(pending, &here, &person, message).await
            }
            Action::Ask(message) => {
                let question = self.prepare_question(handle.id, &message, &here, &person, &handle.channel_language);
                self.relay(pending, &here, &person, question).await
            }
            Action::Choose { question, companion } => {
                let question = self.prepare_chosen_question(question, &companion, &here, &person);
                self.relay(pending, &here, &person, question).await
            }
            Action::Command(Command::ExportMe) => {
                let work = async { catch_panic(self.export(&here, person.id)).await.unwrap_or_else(|answer| answer) };
                self.run(pending, true, work).await
            }
            Action::Command(command) => {
                let work = self.execute_catching_panics(command, &here, &person, &handle.language);
                self.run(pending, false, work).await
            }
            Action::Help { person: of } => {
                let text = match of == person.id {
                    true => self.discord.crisis_text(&handle.language).into(),
                    false => words::help_of_another(),
                };
                self.send_only_answer(pending, &answering::message(&text, &handle.language), "done").await
            }
            Action::Typing(typing) => {
                let choices = timeout_at(since + CHOICES_LATER, self.choices(&typing, &here)).await.unwrap_or_default();
                self.send_only_answer(pending, &answering::choices(&choices), "done").await
            }
            Action::Unknown { choices } => {
                let body =
                    if choices { answering::choices(&[]) } else { answering::message(&words::unknown(), &handle.language) };
                self.send_only_answer(pending, &body, "refused").await
            }
        };
        self.count(label, outcome);
    }

    async fn reject(self: Arc<Self>, interaction: Interaction, since: Instant, _slot: Slot<GuildId>) {
        let wants_choices = matches!(interaction.action, Action::Typing(_) | Action::Unknown { choices: true });
        let handle = &interaction.handle;
        let body = if wants_choices { answering::choices(&[]) } else { answering::message(&words::busy(), &handle.language) };
        // The interaction is counted already, whether this answer arrives or not.
        self.answer(handle, &body, since).await;
    }

    /// Runs a command and sends its answer: at once, or after a deferred response if the command takes long, the answer has a file, or the
    /// interaction is not fresh.
    async fn run(&self, pending: Pending<'_>, has_file: bool, work: impl Future<Output = Answer>) -> &'static str {
        let work = async { timeout(LONGEST, work).await.unwrap_or_else(|_| Answer::Failed(words::too_long())) };
        tokio::pin!(work);
        let deferred = answering::deferred(pending.replaces);
        let (sent, answer) = if !has_file && self.discord.now().since(pending.handle.id.time()) < FRESH {
            if let Ok(answer) = timeout_at(pending.since + ANSWERED_LATER, work.as_mut()).await {
                let body = answering::of(&answer, pending.handle, pending.replaces);
                return self.send_only_answer(pending, &body, answer.outcome()).await;
            }
            // The work in progress is finished, even if the deferred response does not arrive.
            tokio::join!(self.send_first_answer(pending, &deferred), work)
        } else {
            // If the deferred response does not arrive, the person no longer expects the command to be executed.
            match self.send_first_answer(pending, &deferred).await {
                Ok(()) => (Ok(()), work.await),
                Err(outcome) => return outcome,
            }
        };
        match sent {
            Err(outcome) => outcome,
            Ok(()) if self.edit_answer(pending.handle, &answer, &pending.handle.language, pending.replaces).await => {
                answer.outcome()
            }
            Ok(()) => "unanswered",
        }
    }

    /// Sends the only answer to an interaction. Returns the outcome to count: `outcome`, if the answer arrives.
    async fn send_only_answer(&self, pending: Pending<'_>, body: &Value, outcome: &'static str) -> &'static str {
        self.send_first_answer(pending, body).await.map_or_else(|outcome| outcome, |()| outcome)
    }

    /// Sends the first answer, and measures how long it took. The error is the outcome to count.
    async fn send_first_answer(&self, pending: Pending<'_>, body: &Value) -> Result<(), &'static str> {
        let Pending { handle, since, label, .. } = pending;
        match self.answer(handle, body, since).await {
            FirstAnswer::Arrived => {
                self.instruments.discord_command_duration.record(since.elapsed().as_secs_f64(), [label]);
                Ok(())
            }
            FirstAnswer::AlreadyAnswered => Err("repeated"),
            FirstAnswer::Lost => Err("unanswered"),
        }
    }

    /// Executes a command. A panic becomes an answer.
    async fn execute_catching_panics(&self, command: Command, here: &ChannelContext, person: &Person, language: &str) -> Answer {
        catch_panic(self.execute(command, here, person, language)).await.unwrap_or_else(|answer| answer)
    }

    async fn execute(&self, command: Command, here: &ChannelContext, caller: &Person, language: &str) -> Result<Answer, Answer> {
        let person = caller.id;
        let done = match command {
            Command::ForgetMe { sure } => return self.forget(sure, here, person).await,
            Command::Companion { companion } => return self.profiles(companion.as_deref(), here, language).await,
            Command::Own(request) => return self.own(request, here, person, language).await,
            Command::SetUp(request) => return self.set_up(request, here, person, language).await,
            Command::Clear { sure } => return self.clear(sure, here, person).await,
            Command::Stop { companion } => self.stop(companion.as_deref(), here).await,
            Command::DecideCall { call, confirm } => self.decide_call(call, confirm, here, caller).await,
            Command::Next { companion } => self.next(companion.as_deref(), here, caller).await,
            Command::Again { message } => self.again(message, here, caller).await,
            Command::PauseForMe { is_own: true } => self.ignore(true, here, person).await,
            Command::PauseForMe { is_own: false } => Ok(words::pause_for_me()),
            Command::WhyOf { message } => self.why_of(message, here).await,
            Command::ForgetMessage { message, author } => self.forget_message(message, author, here, person).await,
            Command::Status { companion } => self.status(companion.as_deref(), here, person).await,
            Command::Join { companion, to } => self.join(&companion, to.as_ref().unwrap_or(here), here, person).await,
            Command::Leave { companion, from } => self.leave(&companion, from.as_ref().unwrap_or(here), here, person).await,
            Command::Talkativeness { level, quiet_hours, companion } => {
                self.set_level(level, quiet_hours.as_deref(), companion.as_deref(), here, person).await
            }
            Command::Pause { companion, on } => self.pause(on, companion.as_deref(), here, person).await,
            Command::Why { companion } => self.why(companion.as_deref(), here, language).await,
            Command::Recall { words } => self.recall(&words, here).await,
            Command::Roles(wanted) => self.roles(wanted, here, person).await,
            Command::Memory(wanted) => self.memory(wanted, here, person).await,
            Command::IgnoreMe { on } => self.ignore(on, here, person).await,
            Command::VoiceJoin { to } => self.voice_join(to, here, person).await,
            Command::VoiceLeave => self.voice_leave(here, person).await,
            Command::VoiceStatus => self.voice_status(here, person).await,
            Command::VoiceNotes { on } => self.voice_notes(on, here, person).await,
            Command::About => {
                let (operator, privacy) = self.discord.responsible();
                Ok(words::about(operator, privacy))
            }
            // `handle` answers the first two.
            Command::Say { .. } | Command::ExportMe | Command::Help => Ok(words::help()),
        };
        done.map(Answer::Done)
    }

    /// The room of a channel. `None` if no companion was ever in it.
    async fn room(&self, at: &ChannelContext) -> Result<Option<Room>, Answer> {
        self.room_of(at, at.channel).await
    }

    /// The room that a thread or a direct message becomes with its first message: it has the companions of the thread's channel, or those of the
    /// settings. `None` for other channels.
    async fn future_room(&self, at: &ChannelContext) -> Result<Option<Room>, Answer> {
        if let Some(parent) = at.parent {
            return self.room_of(at, parent).await;
        }
        let Some(id) = RoomId::of(&at.channel.channel()).filter(|_| at.is_direct()) else { return Ok(None) };
        let all = self.visible(at).await?;
        let companions: Vec<_> = match &self.direct_companions {
            Some(ids) => all.into_iter().filter(|companion| ids.contains(&companion.id)).map(choosing::as_member).collect(),
            None => all.into_iter().take(1).map(choosing::as_member).collect(),
        };
        Ok(Some(Room {
            id,
            guild: at.guild_id(),
            companions,
            minors: false,
            voice_notes: VoiceNotes::Off,
            words: RoomWords::NONE,
            paused: false,
            last_at: None,
            inherits_from: None,
            title: None,
            language: None,
            quiet_hours: None,
        }))
    }

    async fn room_of(&self, at: &ChannelContext, channel: Snowflake) -> Result<Option<Room>, Answer> {
        let Some(id) = RoomId::of(&channel.channel()) else { return Ok(None) };
        match self.backend.rooms.get(&id).await {
            // A room of another guild is never used, whatever the interaction says.
            Ok(mut room) if room.guild == at.guild_id() => {
                room.companions.retain(|companion| !companion.kept_out);
                Ok(Some(room))
            }
            Ok(_) => {
                tracing::error!(%channel, guild = %at.guild_id(), "an interaction names a channel of another guild");
                Ok(None)
            }
            Err(Refused::NotFound(_)) => self.refuse_in_guilds_without_bot(at).await.map(|()| None),
            Err(refused) => Err(refused.into()),
        }
    }

    /// An application's commands may be installed in a guild without its bot. There, commands are refused with a link to invite the bot.
    async fn refuse_in_guilds_without_bot(&self, at: &ChannelContext) -> Result<(), Answer> {
        let Some(guild) = at.guild.filter(|guild| !self.discord.cache().has_guild(*guild)) else { return Ok(()) };
        match self.discord.rest().send(&Request::guild(guild)).await {
            Err(Failed::Refused(refusal)) if refusal.means_not_a_member() => {
                let link = invitation(self.discord.bot().await.map_err(unanswered)?.application);
                Err(Answer::Refused(words::not_a_member(link)))
            }
            _ => Ok(()),
        }
    }

    fn count(&self, label: &'static str, outcome: &'static str) {
        self.instruments.discord_commands.add(1, [label, outcome]);
    }
}

/// Turns a panic of `work` into an answer.
async fn catch_panic<T>(work: impl Future<Output = Result<T, Answer>>) -> Result<T, Answer> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a slash command panicked; its user gets an answer that says so");
        Err(Answer::Failed(words::broken()))
    })
}

impl Answer {
    const fn text(&self) -> &Text {
        match self {
            Self::Form { too_late: text, .. }
            | Self::Done(text)
            | Self::File { text, .. }
            | Self::Question { text, .. }
            | Self::Rich { text, .. }
            | Self::Refused(text)
            | Self::Failed(text) => text,
        }
    }

    fn file(&self) -> Option<File> {
        let Self::File { file, .. } = self else { return None };
        Some(file.clone())
    }

    const fn outcome(&self) -> &'static str {
        match self {
            Self::Done(_) | Self::File { .. } | Self::Question { .. } | Self::Rich { .. } | Self::Form { .. } => "done",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }
}

impl From<Refused> for Answer {
    fn from(refused: Refused) -> Self {
        let text = words::refusal_text(&refused);
        match refused {
            Refused::Unavailable { .. } | Refused::Damaged(_) | Refused::Broken(_) => Self::Failed(text),
            _ => Self::Refused(text),
        }
    }
}

/// Shows the text but not the file, which holds a person's messages.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text().in_language(Language::English.code()))
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Commands")
    }
}
