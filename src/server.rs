//! The composition root: settings → store → models → actors → console → run → stop. Only this file knows all parts.

mod address;
mod backups;
mod compacting;
mod companion_setup;
mod descriptors;
mod discord;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod growing;
mod in_force;
mod kept_files;
mod lore;
pub mod model_setup;
pub mod offline;
mod open_store;
mod page_settings;
mod receptions;
mod reload;
mod signals;
mod single_node;
pub mod speech;
mod standing_by;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use ractor::Actor;
use tokio::sync::watch;

use crate::actors::calls::shutdown;
use crate::actors::erasure::{cleanup, retention};
use crate::actors::membership::changes;
use crate::actors::membership::memberships::CompanionSet;
use crate::actors::models::Models;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::actors::runtime::moderator::Moderator;
use crate::actors::runtime::root::{Root, RootMessage};
use crate::actors::runtime::startup_log;
use crate::actors::runtime::watchdog::{STALLED_AFTER_TICKS, Watchdog};
use crate::adapters::console::{CannotServe, Console, Served};
use crate::adapters::llm::moderation::OpenAiModeration;
use crate::adapters::llm::{self, openai::Dialects};
use crate::adapters::store::manifest::FORMAT;
use crate::adapters::store::postgres::NO_COMPACTION;
use crate::adapters::store::sled::{self, OpenOptions, SledStore, disk_bytes, disk_free};
use crate::adapters::store::target;
use crate::adapters::store::{Identity, OpenError};
use crate::adapters::system::{SystemClock, SystemRng};
use crate::adapters::tools::ToolSet;
use crate::backend;
use crate::backend::loading::{LoadRoomsError, load_rooms};
use crate::backend::notes::StoredNotes;
use crate::domain::id::ModelName;
use crate::journal::record::NEWEST_VERSION;
use crate::ports::backend::keeping::FailedReload;
use crate::ports::clock::Clock as _;
use crate::ports::language_model::ModelRole;
use crate::ports::nodes::Nodes;
use crate::ports::rng::Rng as _;
use crate::ports::store::Store;
use crate::settings::connection::Connection;
use crate::settings::roster::files::CompanionFiles;
use crate::settings::storage::{Engine, Storage};
use crate::settings::{self, Loaded, Overlay, Problems, Sources};
use crate::telemetry::Telemetry;
use crate::telemetry::recorder::Recorder;

use self::backups::Backups;
use self::in_force::{InForce, State};
use self::kept_files::{Copies, KeptFiles};
use self::model_setup::Setup;
use self::open_store::open;
use self::page_settings::PageSettings;
use self::reload::Reloading;
use self::signals::Signals;
use self::single_node::SingleNode;

pub use address::{Running, running};
pub use open_store::{OpenStore, check_folder, is_half_copied, is_moved_folder, note_copying, note_moved_folder, open_engine};

/// The timeout for opening a damaged store.
const OPEN_DEADLINE: Duration = Duration::from_secs(60);
/// The size of sled's page cache, in bytes.
pub const CACHE_BYTES: u64 = 128 << 20;
/// How long a stopping server waits for parts of statements that are being posted.
const POSTED_WITHIN: Duration = Duration::from_secs(3);
/// The timeout for the runtime's shutdown.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Why the server could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The store cannot be used. Exit code 3.
    #[error("{0:#}")]
    Store(anyhow::Error),
    /// The settings contradict each other. Exit code 2.
    #[error("{0}")]
    Settings(CannotServe),
    /// The settings of Discord cannot be used. Exit code 2.
    #[error("discord.{0}")]
    Discord(settings::Problem),
    /// The settings name companions that do not exist, or cannot be loaded with the companions in the store. Exit code 2.
    #[error("{0}")]
    Companions(Problems),
    /// Another error. Exit code 1.
    #[error("{0:#}")]
    Failed(anyhow::Error),
}

/// Runs the server until SIGTERM or Ctrl-C. The first signal stops it gracefully, the second at once.
///
/// # Errors
/// Returns an error if the server cannot start, if the store accepts no more writes, or if its actors fail too often.
pub fn run(mut loaded: Loaded, sources: &Sources, telemetry: &Telemetry, accept_loss: bool) -> Result<(), Ended> {
    let connections = descriptors::connections(loaded.settings.server.max_connections);
    loaded.settings.server.max_connections = connections.map_err(|few| Ended::Failed(few.into()))?;
    let mut signals = Signals::listen().context("signal handlers cannot be installed").map_err(Ended::Failed)?;
    let data = loaded.settings.storage.path.clone();
    // Held as long as the process runs, because the process opens the store more than once.
    let held = sled::lock(&data).map_err(|error| Ended::Store(error.into()))?;
    let mut options = OpenOptions { held: Some(held), ..opening(telemetry, accept_loss) };
    let cluster = &loaded.settings.cluster;
    let node = Identity { name: cluster.name(), address: cluster.address.clone().unwrap_or_default() };
    let Some(opened) = signals.interruptible(|| open(&loaded.settings.storage, &options, &node)) else { return Ok(()) };
    let mut store = opened?;
    options.accept_loss = false;
    // The lock is held, so no other server creates such copies now.
    if let Err(error) = target::remove_for_processes(&data) {
        tracing::warn!(%error, "copies that a killed `history verify` left in the data folder cannot be deleted");
    }
    address::clear(&data).context("the address file of a killed server cannot be removed").map_err(Ended::Failed)?;
    // The metrics use the path and not the store: a late reader of metrics must not keep the store open.
    if store.on_disk().is_some() {
        let (used, free) = (data.clone(), data.clone());
        telemetry.metrics().observe_disk(move || disk_bytes(&used).ok(), move || disk_free(&free).ok());
    }
    let compaction_failed = Arc::new(AtomicBool::new(false));
    // After a compaction, the companions are those that were in force before it.
    let mut is_reopened = false;
    let mut is_first = true;
    let mut must_compact = match store.on_disk() {
        Some(store) => compacting::is_due_at_start(store, &loaded.settings.storage)?,
        None => false,
    };
    loop {
        if must_compact {
            store = match close(store) {
                Ok(()) => {
                    let reopened = signals.interruptible(|| {
                        let is_compacted = compacting::compact(&loaded.settings, telemetry, &options)?;
                        compaction_failed.store(!is_compacted, Ordering::Relaxed);
                        open(&loaded.settings.storage, &options, &node)
                    });
                    let Some(reopened) = reopened else { return Ok(()) };
                    // A compaction request that arrived meanwhile is fulfilled.
                    signals.compact.mark_unchanged();
                    reopened?
                }
                Err(store) => {
                    compaction_failed.store(true, Ordering::Relaxed);
                    tracing::error!(
                        "the store is still in use, perhaps by a backup, and was not compacted; the next attempt is on another day"
                    );
                    store
                }
            };
        }
        if signals.is_stopped() {
            return Ok(());
        }
        if let Some(shared) = store.shared()
            && !standing_by::own(shared, &loaded.settings.server, &data, telemetry, &signals, is_first)?
        {
            return Ok(());
        }
        is_first = false;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be created")
            .map_err(Ended::Failed)?;
        let serving =
            serve(loaded.clone(), sources, telemetry, store.clone(), compaction_failed.clone(), is_reopened, &mut signals);
        let outcome = runtime.block_on(serving);
        // Unfinished work is on record. The store closes last, when it is no longer referenced.
        runtime.shutdown_timeout(STOP_DEADLINE);
        (is_reopened, must_compact) = match outcome? {
            Outcome::Stopped => {
                // The store may still be referenced, so its ownership is released explicitly.
                if let Some(shared) = store.shared() {
                    shared.give_back();
                }
                return Ok(());
            }
            Outcome::Compact(companions) => {
                loaded.companions = companions;
                (true, true)
            }
            // The next owner may change the companions in the store.
            Outcome::Lost => (false, false),
        };
    }
}

/// Why the server stopped serving.
enum Outcome {
    /// The server received a stop signal.
    Stopped,
    /// The server must compact the store, and then serve again with these companions.
    Compact(CompanionSet),
    /// Another node may own the store.
    Lost,
}

/// Why the server must stop serving.
enum Stop {
    Shutdown,
    Compact,
    Lost,
}

/// Closes the store, so that it can be opened again. Returns the store if it is still in use.
fn close(store: OpenStore) -> Result<(), OpenStore> {
    match store {
        OpenStore::Sled(store) => Arc::try_unwrap(store).map(drop).map_err(OpenStore::Sled),
        OpenStore::Postgres(store) => Arc::try_unwrap(store).map(drop).map_err(OpenStore::Postgres),
    }
}

/// The journal's newest record version must equal the store's format.
const _: () = assert!(FORMAT == NEWEST_VERSION as u64);

fn opening(telemetry: &Telemetry, accept_loss: bool) -> OpenOptions {
    OpenOptions {
        accept_loss,
        deadline: OPEN_DEADLINE,
        cache_bytes: CACHE_BYTES,
        new_id: SystemRng.id(),
        instruments: telemetry.metrics().instruments(),
        held: None,
    }
}

/// The error message for a store that cannot be opened. If the store is damaged, it says how to restore the newest backup.
pub fn with_newest_backup(error: &OpenError, data: &Path) -> String {
    if error.is_damage() { format!("{error}; {}", newest_backup(data)) } else { error.to_string() }
}

/// A sentence that names the newest backup of a data folder, and how to restore it.
pub fn newest_backup(data: &Path) -> String {
    let (newest, data) = (backups::newest(data, SystemClock.now()), data.display());
    let Some(newest) = newest else { return format!("there is no backup in {data}/backups") };
    let newest = newest.display();
    format!(
        "the newest backup is {newest}: move `store`, `manifest` and `commits` out of {data}, and run `tertulia history restore {newest}`"
    )
}

async fn serve(
    mut loaded: Loaded,
    sources: &Sources,
    telemetry: &Telemetry,
    store: OpenStore,
    compaction_failed: Arc<AtomicBool>,
    is_reopened: bool,
    signals: &mut Signals,
) -> Result<Outcome, Ended> {
    let _watchdog = Watchdog::start(STALLED_AFTER_TICKS).context("the watchdog cannot be started").map_err(Ended::Failed)?;
    let (failed, mut store_failed) = watch::channel(None::<String>);
    let (rooms, has_rooms) = (loaded.settings.console.rooms.clone(), loaded.has_rooms);
    let data = loaded.settings.storage.path.clone();
    let dialects = Dialects::default();
    let kept_files = match store.shared() {
        Some(shared) => {
            let files = KeptFiles::new(&data, &loaded.settings.cluster);
            let files = files.map_err(|problem| Ended::Failed(anyhow::anyhow!("cluster.{problem}")))?;
            files.restore(&**shared).await;
            Some(Arc::new(files))
        }
        None => None,
    };
    // Files may have been restored, and settings changed before a compaction. What can no longer be read stays as it was.
    if let Ok(Loaded { settings, kept, fields, .. }) = settings::load_with(sources, &Overlay::new()) {
        loaded = Loaded { settings: loaded.settings.with_live(&settings), kept, fields, ..loaded };
    }
    let connection = Connection::read(&data).map_err(|problem| Ended::Failed(anyhow::anyhow!("{problem}")))?;
    let configured = Arc::new(loaded.settings.clone());
    let (kept, fields) = (loaded.kept.clone(), loaded.fields.clone());
    if let Some(connection) = &connection {
        loaded.settings = connection.applied_to(&configured);
        tracing::info!(base_url = connection.base_url, "the models that were connected on the page are used");
        let overruled = connection.overruled_by(&configured);
        if !overruled.is_empty() {
            tracing::info!(
                settings = overruled.join(", "),
                "limits that were given on the page are not used, because the settings set these"
            );
        }
    }
    if !is_reopened {
        add_kept(&mut loaded, sources, &*store.store()).await?;
    }
    let models = models(&loaded.settings.models, &dialects);
    let models = models.map_err(|problem| Ended::Failed(anyhow::anyhow!("models.{problem}")))?;
    let left_out: Vec<_> = loaded.broken.iter().map(ToString::to_string).collect();
    let lore_files = std::mem::take(&mut loaded.lore);
    let mut context = context(loaded, models, telemetry.recorder(), store.store(), failed, compaction_failed)?;
    let tools = Arc::new(tools(&context.settings).map_err(|problem| Ended::Failed(anyhow::anyhow!("{problem}")))?);
    context.tools = tools.clone();
    match store.shared() {
        Some(shared) => context.lease = shared.lease(),
        None => {
            let instruments = context.recorder.instruments();
            instruments.partition_owned.set(1, ["0"]);
            instruments.partition_term.set(1, ["0"]);
        }
    }
    *context.failed_reload.lock() =
        (!left_out.is_empty()).then(|| FailedReload { at: context.clock.now().into(), problems: left_out });
    let maintenance = store.maintenance();
    let token = configured.discord.token().ok().flatten();
    let joined = discord::join(&context, &context.settings, &maintenance).map_err(Ended::Discord)?;
    joined.begin(&context);
    let (root, tree) = Actor::spawn(None, Root, context.clone())
        .await
        .map_err(|error| Ended::Failed(anyhow::anyhow!("the actors cannot be started: {error}")))?;
    // The memberships are loaded before any channel starts.
    load_rooms(&context, &rooms, has_rooms).await.map_err(|error| cannot_load_rooms(error, "the rooms cannot be set up"))?;
    changes::resume_deletions(&context).await;
    reload::load_briefs(&context).await;
    lore::load(&context, lore_files).await;
    let pictures = context.pictures.load(&*context.store).await;
    pictures.map_err(|error| cannot_load_rooms(error.into(), "the companions' pictures cannot be read"))?;
    let asleep = context.memberships.all().iter().filter(|(channel, _)| context.platforms.is_disabled(channel)).count();
    if asleep > 0 {
        tracing::warn!(
            channels = asleep,
            "companions are members of Discord channels, which do not start without discord.token: set it to start them"
        );
    }
    startup_log::record_start(&context).await;
    retention::run_daily(context.clone());
    tokio::spawn(cleanup::keep_cleaning_up(context.clone()));
    root.cast(RootMessage::WakePending).context("the actors have stopped").map_err(Ended::Failed)?;
    let _backups = store.on_disk().map(|store| {
        let (clock, storage) = (context.clock.clone(), context.settings.storage.clone());
        Backups::begin(store.clone(), clock, storage, telemetry.metrics().instruments())
    });
    let copies = kept_files.map(|files| Copies::new(files, Arc::new(StoredNotes::new(context.clone())), context.rng.clone()));
    if let Some(copies) = copies.clone() {
        tokio::spawn(async move { copies.keep().await });
    }
    let backend = backend::backend(context.clone(), maintenance.clone());
    let (records, instruments) = (backend.records.clone(), context.recorder.instruments().clone());
    tokio::spawn(receptions::keep_counting(records, context.hub.clone(), instruments));
    let reloading = Arc::new(Reloading::new(context.clone(), sources.clone()));
    let files = CompanionFiles::new(sources.companions());
    let companions = Arc::new(companion_setup::Setup::new(context.clone(), reloading.clone(), files, dialects.clone()));
    if let Some(commands) = joined.commands {
        commands.set_companions(companions.clone());
    }
    let state = State { configured, connection, kept, fields, token };
    let in_force = Arc::new(InForce {
        context: context.clone(),
        dialects: dialects.clone(),
        data: data.clone(),
        copies: copies.clone(),
        maintenance,
        reloading,
        companions: companions.clone(),
        tools: tools.clone(),
        state: Arc::new(tokio::sync::Mutex::new(state)),
    });
    let setup = Arc::new(Setup::new(context.clone(), dialects, in_force.clone()));
    let trying = setup.clone();
    tokio::spawn(async move { trying.try_at_start().await });
    let nodes: Arc<dyn Nodes> = match store.shared() {
        Some(shared) => shared.clone(),
        None => Arc::new(SingleNode::of(&context.settings.cluster)),
    };
    let console = Console::bind(
        &context.settings.server,
        Served::Core {
            backend: Box::new(backend),
            models: setup,
            settings: Arc::new(PageSettings::new(in_force.clone())),
            companions,
            nodes,
            tools,
        },
        context.rng.clone(),
        context.clock.clone(),
        telemetry.metrics(),
    )
    .await
    .map_err(cannot_serve)?;
    let address = console.address();
    let _note = address::write(&data, address).context("the server's address file cannot be written").map_err(Ended::Failed)?;
    let stop_requested = wait_for_stop(context.clone(), store.on_disk().cloned(), in_force, signals);
    announce("ready", address);
    tracing::info!(%address, "ready");

    let mut tree = tree;
    let lost = async {
        match store.shared() {
            Some(shared) => shared.lost().await,
            None => std::future::pending().await,
        }
    };
    let stop = async {
        tokio::select! {
            biased;
            _ = lost => Ok(Stop::Lost),
            stop = stop_requested => Ok(stop),
            _ = store_failed.changed() => match store.shared() {
                // The data in a database is still intact, so this node, or another one, continues with it.
                Some(shared) => {
                    shared.give_up();
                    Ok(Stop::Lost)
                }
                None => {
                    let detail = store_failed.borrow().clone().unwrap_or_default();
                    Err(Ended::Store(anyhow::anyhow!(
                        "the store accepts no more writes: {detail}; make room or repair the disk, then start again; if `tertulia history \
                         verify` finds damage, restore a backup; everything that was accepted is stored"
                    )))
                }
            },
            _ = &mut tree => Err(Ended::Failed(anyhow::anyhow!("the actors failed too often; see the log"))),
        }
    };
    let (report_outcome, reported_outcome) = tokio::sync::oneshot::channel();
    let served = console.serve(async move {
        let outcome = stop.await;
        // The receiver lives until the console has stopped serving.
        let _ = report_outcome.send(outcome);
    });
    served.await;
    let outcome = reported_outcome.await.unwrap_or(Ok(Stop::Shutdown));
    // A node that has lost the store may neither post nor write.
    if !matches!(outcome, Ok(Stop::Lost)) {
        shutdown::shut_down(&context).await;
        context.postings.close(POSTED_WITHIN).await;
        if let Some(copies) = copies {
            // Failures are logged.
            let _ = copies.update().await;
        }
    }
    root.stop(None);
    Ok(match outcome? {
        Stop::Lost => Outcome::Lost,
        Stop::Compact => {
            tracing::info!("stopped to compact the store; pending replies are made afterwards");
            Outcome::Compact(CompanionSet::clone(&context.memberships.companions()))
        }
        Stop::Shutdown => {
            tracing::info!("stopped; pending replies are made after the next start");
            Outcome::Stopped
        }
    })
}

fn cannot_serve(error: CannotServe) -> Ended {
    match error {
        CannotServe::Setting(_) => Ended::Settings(error),
        CannotServe::InUse(_) | CannotServe::CannotBind { .. } => Ended::Failed(error.into()),
    }
}

/// Adds the companions that are stored in the store.
async fn add_kept(loaded: &mut Loaded, sources: &Sources, store: &dyn Store) -> Result<(), Ended> {
    let kept = reload::overlay(store).await;
    let kept = kept.map_err(|error| cannot_load_rooms(error.into(), "the companions in the store cannot be read"))?;
    if kept.is_empty() && loaded.unknown.is_empty() {
        return Ok(());
    }
    let with_kept = settings::load_with(sources, &kept).and_then(Loaded::known).map_err(Ended::Companions)?;
    let known: Vec<_> = loaded.broken.iter().map(ToString::to_string).collect();
    for problem in with_kept.broken.iter().map(ToString::to_string).filter(|problem| !known.contains(problem)) {
        tracing::error!(problem, "a companion in the store is left out");
    }
    let Loaded { companions, companions_from, left_out, broken, skipped, unknown, .. } = with_kept;
    *loaded = Loaded { companions, companions_from, left_out, broken, skipped, unknown, ..loaded.clone() };
    loaded.settings.console = with_kept.settings.console;
    Ok(())
}

/// Converts an error of loading the rooms. If records cannot be read, it is an error of the store, because only a repair of the
/// store helps.
fn cannot_load_rooms(error: LoadRoomsError, what: &'static str) -> Ended {
    // A database may be unreachable only for a while.
    let is_unreadable = matches!(&error, LoadRoomsError::Read(error) if error.is_damage());
    let error = anyhow::Error::from(error).context(what);
    if is_unreadable { Ended::Store(error) } else { Ended::Failed(error) }
}

/// The models of the settings, for all roles and names.
///
/// # Errors
/// Returns an error if the settings name an endpoint that cannot be used.
pub fn models(settings: &settings::models::Models, dialects: &Dialects) -> Result<Models, settings::Problem> {
    let model = |role: ModelRole, name: &ModelName| llm::shared(settings, role, name, dialects);
    let own = |role: ModelRole| model(role, &role.into());
    let mut models = Models::new(own(ModelRole::Side)?, own(ModelRole::Main)?);
    // Every model is available in both roles, because reloaded companions may name any of them.
    for role in [ModelRole::Side, ModelRole::Main] {
        let is_rehearsal = |name: &ModelName| settings.served(role, name).endpoint.is_none();
        for name in settings.names().filter(|name| *name != role.into() && !is_rehearsal(name)) {
            models = models.with(role, name.clone(), model(role, &name)?);
        }
    }
    Ok(models)
}

/// Begins to connect the servers of tools.
///
/// # Errors
/// Returns an error if a setting, or the certificates, cannot be used.
pub fn tools(settings: &settings::Settings) -> Result<ToolSet, settings::Problem> {
    let keyed = |section: &'static str| {
        move |problem: settings::Problem| settings::Problem { key: format!("{section}.{}", problem.key), ..problem }
    };
    let authorities = settings.models.authorities().map_err(keyed("models"))?;
    ToolSet::start(&settings.tools, &settings.storage.path, authorities, Arc::new(SystemClock)).map_err(keyed("tools"))
}

/// The moderation service, if one is configured.
///
/// # Errors
/// Returns an error if its address, its key or the certificates cannot be used.
pub fn moderation(settings: &settings::models::Models) -> Result<Option<Arc<Moderator>>, settings::Problem> {
    let Some(moderation) = &settings.moderation else { return Ok(None) };
    let service = OpenAiModeration::new(moderation, &settings.authorities()?);
    let service = service.map_err(|problem| settings::Problem { key: format!("moderation.{}", problem.key), ..problem })?;
    Ok(Some(Arc::new(Moderator::new(Arc::new(service)))))
}

fn context(
    loaded: Loaded,
    models: Models,
    recorder: Recorder,
    store: Arc<dyn Store>,
    failed: watch::Sender<Option<String>>,
    compaction_failed: Arc<AtomicBool>,
) -> Result<ActorContext, Ended> {
    let Loaded { settings, companions, .. } = loaded;
    let speech = speech::speech(&settings).map_err(|problem| Ended::Failed(anyhow::anyhow!("{problem}")))?;
    let moderation = moderation(&settings.models).map_err(|problem| Ended::Failed(anyhow::anyhow!("models.{problem}")))?;
    Ok(ActorContext {
        compaction_failed,
        moderation,
        store_failed: Arc::new(move |detail| {
            tracing::error!(detail, "the store accepts no more writes");
            failed.send_replace(Some(detail));
        }),
        ..ActorContext::new(Environment {
            store,
            clock: Arc::new(SystemClock),
            rng: Arc::new(SystemRng),
            models,
            speech,
            recorder,
            settings: Arc::new(settings),
            companions,
        })
    })
}

/// Prints the line on standard output that the starting program waits for.
fn announce(state: &str, address: std::net::SocketAddr) {
    let mut out = std::io::stdout();
    // The starting program may have closed the output; the server runs regardless.
    let _ = writeln!(out, "{state} http://{address}").and_then(|()| out.flush());
}

/// Waits for SIGTERM, Ctrl-C, SIGUSR2 or the time to compact. Reads the settings and the companions again at SIGHUP.
async fn wait_for_stop(
    context: ActorContext,
    store: Option<Arc<SledStore>>,
    in_force: Arc<InForce>,
    signals: &mut Signals,
) -> Stop {
    let mut shutdown = signals.stop();
    let Signals { compact, reload, .. } = signals;
    let due = async {
        let Some(store) = &store else { return std::future::pending().await };
        let (clock, storage) = (&*context.clock, &context.settings.storage);
        compacting::due(&**store, clock, storage, || store.is_copying(), &context.compaction_failed).await;
    };
    let compact_requested = async {
        // The sending thread lives as long as the process.
        let _ = compact.changed().await;
        let Some(store) = &store else {
            tracing::warn!("{NO_COMPACTION}");
            return std::future::pending().await;
        };
        if store.is_copying() {
            tracing::info!("the store is compacted after the current backup");
            store.wait_for_copies().await;
        }
    };
    let stop = tokio::select! {
        biased;
        _ = shutdown.wait_for(|stop| *stop) => Stop::Shutdown,
        () = compact_requested => Stop::Compact,
        () = due => Stop::Compact,
        () = in_force.read_at_each(reload) => Stop::Shutdown,
    };
    if matches!(stop, Stop::Compact) {
        tracing::info!("stopping to compact the store");
    }
    stop
}

/// Whether the configured store seems to exist. A database is assumed to contain one, without a check.
pub fn has_store(storage: &Storage) -> bool {
    storage.engine == Engine::Postgres || holds_a_store(&storage.path)
}

/// Whether a folder seems to hold a store.
pub fn holds_a_store(data: &Path) -> bool {
    data.join("manifest").exists() || data.join("store").exists()
}

#[cfg(test)]
mod tests;
