//! The context that all actors of one system share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use ractor::ActorRef;

use crate::actors::calls::{Calls, Speech};
use crate::actors::companion::briefs::Briefs;
use crate::actors::companion::lore::Lore;
use crate::actors::companion::pictures::Pictures;
use crate::actors::erasure::rewrite_locks::RewriteLocks;
use crate::actors::membership::guest_book::GuestBook;
use crate::actors::membership::memberships::{CompanionSet, Memberships};
use crate::actors::membership::people::{NoteSwitches, OptOuts, Told};
use crate::actors::messages::supervision::Ending;
use crate::actors::models::{Models, Pool};
use crate::actors::recall::Recall;
use crate::actors::runtime::actor_keys::PoolKey;
use crate::actors::runtime::directory::{ActorKey, Directory, Registration, Sort};
use crate::actors::runtime::hub::Hub;
use crate::actors::runtime::moderator::Moderator;
use crate::actors::runtime::postings::Postings;
use crate::actors::runtime::sent_prompts::SentPrompts;
use crate::domain::id::{ChannelId, GuildId, PersonId};
use crate::domain::message::{Author, Role};
use crate::domain::room_words::RoomWords;
use crate::domain::text::one_line;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::record::NoteSwitchRecord;
use crate::ports::backend::keeping::{FailedReload, SkippedCompanion};
use crate::ports::chat_platform::Platforms;
use crate::ports::clock::Clock;
use crate::ports::gateway::Gateways;
use crate::ports::lease::{Lease, Unlimited};
use crate::ports::rng::Rng;
use crate::ports::store::Store;
use crate::ports::tools::{NoTools, Tools};
use crate::ports::voice_call::VoiceCalls;
use crate::settings::{Settings, console};
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::operations;
use crate::telemetry::recorder::Recorder;

/// The shared context of the actors. Cheap to clone.
#[derive(Clone)]
pub struct ActorContext {
    /// Only the writer writes to it.
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub directory: Directory,
    pub hub: Hub,
    /// The chat platforms besides the console.
    pub platforms: Platforms,
    /// The platforms that receive events over their own connections.
    pub gateways: Gateways,
    /// The voice calls of this server, with their speech recognition and playback.
    pub calls: Calls,
    pub speech: Speech,
    /// Carries out effects in voice calls.
    pub voice_calls: Arc<dyn VoiceCalls>,
    pub pool: Pool,
    /// Tools outside this program that companions may call.
    pub tools: Arc<dyn Tools>,
    /// The moderation service for statements.
    pub moderation: Option<Arc<Moderator>>,
    pub recorder: Recorder,
    /// The settings that the server started with.
    pub settings: Arc<Settings>,
    /// See [`in_force`](Self::in_force).
    pub in_force: Arc<RwLock<Arc<Settings>>>,
    pub memberships: Memberships,
    /// The invitations to rooms, and their guests.
    pub guests: GuestBook,
    /// The people who opted out.
    pub opt_outs: OptOuts,
    /// When people received the disclosure that companions are AI.
    pub told: Told,
    /// Whether notes are taken, by guild and person.
    pub note_switches: NoteSwitches,
    /// The briefs of long personas.
    pub briefs: Briefs,
    /// Which companions have a picture in the store.
    pub pictures: Pictures,
    /// The lorebooks in force.
    pub lore: Lore,
    /// The search indexes of rooms.
    pub recall: Recall,
    /// The prompts of the newest statements.
    pub sent_prompts: SentPrompts,
    /// One lock per channel for rewriting stored events.
    pub rewrite_locks: RewriteLocks,
    /// Whether the last attempt to compact the store failed or found too little disk space. In that case, it is unknown when
    /// erased text leaves the file.
    pub compaction_failed: Arc<AtomicBool>,
    /// Companions that are no longer configured, because the last reload skipped their folders.
    pub skipped_companions: Arc<Mutex<Vec<SkippedCompanion>>>,
    /// The last reload of the settings, if it failed.
    pub failed_reload: Arc<Mutex<Option<FailedReload>>>,
    /// The parts of statements that are being posted on platforms.
    pub postings: Postings,
    /// For how long this server may act on platforms.
    pub lease: Arc<dyn Lease>,
    /// Called when the store has failed and accepts no more writes. The process has to be restarted.
    pub store_failed: Arc<dyn Fn(String) + Send + Sync>,
}

/// The parts of a context that have no default.
pub struct Environment {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub models: Models,
    pub speech: Speech,
    pub recorder: Recorder,
    pub settings: Arc<Settings>,
    pub companions: CompanionSet,
}

/// The entry of a running actor in the directory and in the count of running actors. Dropping it removes both.
#[must_use = "the entry is removed when this is dropped"]
pub struct Registered {
    entry: Registration,
    _counted: Counted,
}

impl Registered {
    /// See [`Registration::is_successor`].
    pub const fn is_successor(&self) -> bool {
        self.entry.is_successor()
    }
}

/// A title is cut after this many characters.
const LONGEST_TITLE: usize = 200;

impl ActorContext {
    /// The displayed title of a room. For a channel of another platform, it is the title there.
    pub fn title_of(&self, channel: &ChannelId, membership: &Membership) -> Option<Arc<str>> {
        let title = self.platforms.of(channel).and_then(|platform| platform.title(channel));
        let title = title.map(|title| one_line(&title, LONGEST_TITLE)).filter(|title| !title.is_empty());
        title.map(Arc::from).or_else(|| membership.title.clone())
    }

    /// Drops cached data of a room's messages, because some of them are changed or erased.
    pub fn forget_words(&self, channel_key: &ChannelKey) {
        self.recall.forget(channel_key);
        // Prompts of other rooms of the guild may have notes of this one.
        self.sent_prompts.forget_guild(&channel_key.guild);
    }

    /// The words of a room itself. Where nothing is set at run time, those of `console.rooms`.
    pub fn words_of(&self, channel: &ChannelId) -> RoomWords {
        let configured = self.settings.console.rooms.iter().find(|room| room.channel() == *channel);
        let configured = configured.map(console::Room::words).unwrap_or_default();
        self.memberships.words(channel).unwrap_or_default().or(configured)
    }

    /// A context without platforms and memberships. A failure of the store is only logged.
    pub fn new(environment: Environment) -> Self {
        let Environment { store, clock, rng, models, speech, recorder, settings, companions } = environment;
        let directory = Directory::new();
        let (finder, calls) = (directory.clone(), Calls::new(directory.clone()));
        Self {
            store,
            clock,
            rng,
            pool: Pool::new(&settings.models, models, move || finder.find(&PoolKey())),
            tools: Arc::new(NoTools),
            moderation: None,
            directory,
            hub: Hub::new(),
            platforms: Platforms::default(),
            gateways: Gateways::default(),
            voice_calls: Arc::new(calls.clone()),
            calls,
            speech,
            memberships: Memberships::new(
                companions,
                settings.companion_defaults.clone(),
                settings.names.common,
                settings.safety.minors.clone(),
                recorder.instruments().clone(),
            ),
            recorder,
            lore: Lore::default(),
            recall: Recall::new(&settings.memory),
            sent_prompts: SentPrompts::default(),
            in_force: Arc::new(RwLock::new(settings.clone())),
            settings,
            guests: GuestBook::default(),
            opt_outs: OptOuts::default(),
            told: Told::default(),
            note_switches: NoteSwitches::default(),
            briefs: Briefs::default(),
            pictures: Pictures::default(),
            rewrite_locks: RewriteLocks::default(),
            compaction_failed: Arc::default(),
            skipped_companions: Arc::default(),
            failed_reload: Arc::default(),
            postings: Postings::default(),
            lease: Arc::new(Unlimited),
            store_failed: Arc::new(|detail| tracing::error!(detail, "the store takes no more")),
        }
    }

    /// The settings that the server started with, changed for models that were connected on the page: their limits, and the form
    /// of decisions.
    pub fn in_force(&self) -> Arc<Settings> {
        self.in_force.read().clone()
    }

    /// Whether notes are taken in a channel, and shown in its prompts.
    pub fn takes_notes(&self, channel_key: &ChannelKey) -> bool {
        self.note_switch(channel_key).is_some()
    }

    /// The switch of a channel's guild. None: no notes are taken.
    pub fn note_switch(&self, channel_key: &ChannelKey) -> Option<NoteSwitchRecord> {
        let is_of_console = self.platforms.is_written_here(&channel_key.channel);
        let switch = self.note_switches.of_guild(&channel_key.guild, is_of_console);
        switch.filter(|switch| switch.on && self.settings.memory.notes)
    }

    /// Whether notes may be taken of an author. They may of companions.
    pub fn author_may_be_noted(&self, guild: &GuildId, author: &Author) -> bool {
        author.role != Role::Person || self.may_be_noted(guild, &PersonId::from(&*author.id))
    }

    /// Whether notes may be taken of a person.
    pub fn may_be_noted(&self, guild: &GuildId, person: &PersonId) -> bool {
        // Nobody behind a bridge could see, correct or refuse notes.
        !person.is_behind_bridge() && self.note_switches.allows(guild, person) && !self.opt_outs.holds(guild, person)
    }

    /// Replaces the settings in force.
    pub(super) fn put_in_force(&self, settings: Settings) {
        *self.in_force.write() = Arc::new(settings);
    }

    /// Registers an actor that starts, replaces its predecessor, and counts it.
    pub fn register<P: ActorKey>(&self, key: &P, myself: &ActorRef<P::Message>) -> Registered {
        let entry = self.directory.register(key, myself);
        let sort = key.address().sort();
        Registered { entry, _counted: self.recorder.instruments().actors.one([sort.as_str()]) }
    }

    /// Records that an actor ended and that its supervisor restarts it after a delay.
    pub fn restarting(&self, sort: Sort, address: &str, ending: &Ending, after: Duration) {
        ending.measure(sort.as_str(), self.recorder.instruments());
        self.restarted(sort, address, &ending.to_string(), after);
    }

    /// Records that an actor is started again, with the cause as text.
    pub fn restarted(&self, sort: Sort, address: &str, ending: &str, after: Duration) {
        operations::restarted(&self.recorder, sort.as_str(), address, ending, self.clock.now(), after);
    }

    /// Records that an actor exceeded the restart limit of its supervisor.
    pub fn escalated(&self, sort: Sort, address: &str, ending: &str) {
        operations::escalated(&self.recorder, sort.as_str(), address, ending, self.clock.now());
    }
}
