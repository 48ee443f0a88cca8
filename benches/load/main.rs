//! Sends messages as many people would, and measures throughput and latency of the whole system.
//!
//! `cargo bench --bench load -- --help` lists the options. The default is 1,000 messages a second for 20 s, in this process. Unless `--server` names
//! a running server, everything is stored in a temporary folder that is deleted at the end, models answer at once, and budgets do not apply. A
//! message's latency counts from the time when it was due, even if it was sent later.

mod chatter;
mod figures;
mod http;
mod in_process;
mod instant;
mod minutes;
mod pace;
mod report;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use tempfile::TempDir;
use tertulia::cli::Place;
use tertulia::ports::backend::room::MOST_IN_A_ROOM;
use tertulia::settings::{self, Loaded};
use tertulia::telemetry::{self, Plans};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use chatter::Chatter;
use http::Http;
use in_process::InProcess;
use minutes::{Minute, Monitored};
use pace::{LoadResult, Pace, Recent, Target};
use report::{Measured, Plan, Report};

// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many rooms are created or queried concurrently, and how many calls the instant model serves concurrently.
const CONCURRENCY: usize = 256;
/// The seed of the generated messages.
const SEED: u64 = 1;

/// Sends messages as many people would, and measures throughput and latency
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench load --")]
struct Load {
    /// Messages a second, sent at this rate even if earlier ones are not accepted yet
    #[arg(long, default_value_t = 1_000.0, value_name = "N", value_parser = rate)]
    rate: f64,
    /// Instead of a rate: keep this number of messages in flight, and send the next as soon as one is accepted
    #[arg(long, conflicts_with = "rate", value_name = "N")]
    flat_out: Option<NonZeroUsize>,
    /// Duration of the measurement
    #[arg(long, default_value = "20", value_name = "SECONDS", value_parser = seconds)]
    secs: Duration,
    /// Duration of the load before the measurement
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    warm_up_secs: Duration,
    /// Number of rooms
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    channels: u32,
    /// Number of guilds that the rooms are in
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    guilds: u32,
    /// Companions in each room: the first of the configured ones
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST_IN_A_ROOM as i64))]
    companions: u32,
    /// Use the HTTP API of a server that is started for this run
    #[arg(long, conflicts_with = "server")]
    http: bool,
    /// Use the HTTP API of this server; the rooms bench-0, bench-1, … are created in it and remain
    #[arg(long, value_name = "URL")]
    server: Option<reqwest::Url>,
    /// Store in this new folder and keep it [default: a temporary folder, deleted at the end]
    #[arg(long, conflicts_with = "server", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Interval between progress lines on stderr
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = seconds)]
    every_secs: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The folder that holds default.toml, profiles and companions/ [default: config]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    /// The profile: PROFILE.toml in that folder overrides default.toml
    #[arg(long, value_name = "PROFILE", env = "TERTULIA_PROFILE")]
    profile: Option<String>,
}

fn main() -> anyhow::Result<()> {
    // As in the program: without a default, the first use of TLS panics.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Cargo passes `--bench`.
    let load = Load::parse_from(std::env::args_os().filter(|argument| argument != "--bench"));
    let place = Place { config: load.config.clone(), profile: load.profile.clone() };
    let loaded =
        place.sources().and_then(|sources| settings::load(&sources)).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    if load.http || load.server.is_some() {
        Runtime::new()?.block_on(load.over_http(&loaded))
    } else {
        load.in_this_process(loaded)
    }
}

/// What is measured.
trait System: Target + Monitored {
    async fn create(&self, rooms: &Rooms) -> anyhow::Result<()>;

    /// Waits until every room has handled its messages.
    async fn catch_up(&self, rooms: &Rooms) -> anyhow::Result<()>;
}

struct Rooms {
    channels: usize,
    guilds: usize,
    companions: Vec<String>,
}

impl Rooms {
    fn name(number: usize) -> String {
        format!("bench-{number}")
    }

    fn guild(&self, number: usize) -> String {
        format!("bench-{}", number % self.guilds)
    }

    /// What a request to create this room says.
    fn plan(&self, number: usize) -> serde_json::Value {
        serde_json::json!({ "guild": self.guild(number), "companions": self.companions })
    }
}

impl Load {
    /// The rooms with the first companions of the cast, a list of ids and names, and what people say in them.
    fn rooms(&self, mut cast: Vec<(String, String)>) -> anyhow::Result<(Rooms, Chatter)> {
        let (count, configured) = (self.companions as usize, cast.len());
        ensure!(count <= configured, "--companions {count}: {configured} are configured; configure more in config/companions");
        cast.truncate(count);
        let (companions, names) = cast.into_iter().unzip();
        let (channels, guilds) = (self.channels as usize, self.guilds.min(self.channels) as usize);
        Ok((Rooms { channels, guilds, companions }, Chatter::new(SEED, channels, names)))
    }

    fn pace(&self) -> Pace {
        self.flat_out.map_or(Pace::Rate(self.rate), Pace::FlatOut)
    }

    /// A new folder for a store. It is deleted with the second value, if there is one.
    fn folder(&self) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
        if let Some(named) = &self.data {
            std::fs::create_dir(named).with_context(|| format!("--data must name a new folder: {}", named.display()))?;
            return Ok((named.clone(), None));
        }
        let folder = tempfile::tempdir()?;
        Ok((folder.path().to_path_buf(), Some(folder)))
    }

    fn in_this_process(&self, loaded: Loaded) -> anyhow::Result<()> {
        let (data, _temporary) = self.folder()?;
        let plans = Plans::new(&loaded.settings.telemetry, |name| std::env::var(name).ok());
        // Log lines are formatted as in a server, so that their cost counts, and are then dropped.
        let (subscriber, telemetry) = telemetry::build(&loaded.settings.telemetry, plans, io::sink, false)?;
        tracing::subscriber::set_global_default(subscriber)?;
        let cast = loaded.companions.iter().map(|(id, companion)| (id.to_string(), companion.name.to_string()));
        let (rooms, chatter) = self.rooms(cast.collect())?;
        let runtime = Runtime::new()?;
        // `block_on` runs the load on this thread, beside the actors' threads.
        let measured = runtime.block_on(async {
            let system = InProcess::start(loaded, &data, &telemetry, &rooms).await?;
            let measured = self.measure(&system, &rooms, chatter).await;
            system.stop().await;
            measured
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        telemetry.shutdown();
        self.print("inbound port", &rooms, measured?)
    }

    async fn over_http(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let token = loaded.settings.server.token().map_err(|problem| anyhow::anyhow!("server.{problem}"))?;
        // The folder is dropped after the server that writes to it.
        let (_temporary, server) = match &self.server {
            Some(named) => (None, Http::to(named.clone(), token, None)?),
            None => {
                let (data, temporary) = self.folder()?;
                (temporary, Http::start(self.config.as_deref(), self.profile.as_deref(), token, data)?)
            }
        };
        let (rooms, chatter) = self.rooms(server.cast().await?)?;
        let measured = self.measure(&server, &rooms, chatter).await?;
        self.print("HTTP", &rooms, measured)
    }

    /// Creates the rooms, applies the load, and prints progress lines during it.
    async fn measure(&self, system: &impl System, rooms: &Rooms, mut chatter: Chatter) -> anyhow::Result<(LoadResult, Measured)> {
        let at_first = system.figures().await?;
        system.create(rooms).await?;
        pace::apply(system, &mut chatter, self.pace(), self.warm_up_secs, &Recent::default()).await;
        system.catch_up(rooms).await?;
        let before = system.figures().await?;
        let recent = Recent::default();
        let mut is_first = true;
        let show = |minute: &Minute| {
            if std::mem::take(&mut is_first) {
                eprintln!("{}", Minute::HEAD);
            }
            eprintln!("{minute}");
        };
        let load = pace::apply(system, &mut chatter, self.pace(), self.secs, &recent);
        let (result, minutes) = minutes::observe(load, system, &recent, self.every_secs, show).await;
        let over = Instant::now();
        system.catch_up(rooms).await?;
        let caught_up = over.elapsed();
        let after = system.figures().await?;
        Ok((result, Measured { at_first, before, after, caught_up, minutes }))
    }

    fn print(&self, way: &'static str, rooms: &Rooms, (result, measured): (LoadResult, Measured)) -> anyhow::Result<()> {
        let plan =
            Plan { way, channels: rooms.channels, guilds: rooms.guilds, companions: rooms.companions.len(), pace: self.pace() };
        let report = Report::of(plan, &result, measured);
        if self.json {
            println!("{}", serde_json::to_string(&report)?);
            return Ok(());
        }
        print!("{report}");
        if let Some(data) = self.data.as_deref().map(std::path::Path::display) {
            let compact = format!("TERTULIA__STORAGE__PATH={data} tertulia history compact");
            println!("{:<22}{data}; {compact} shows how much of it can be freed", "stored in");
        }
        Ok(())
    }
}

fn rate(given: &str) -> Result<f64, String> {
    positive(given, 1_000_000.0)
}

fn seconds(given: &str) -> Result<Duration, String> {
    positive(given, 86_400.0).map(Duration::from_secs_f64)
}

fn positive(given: &str, most: f64) -> Result<f64, String> {
    let number = given.parse().ok().filter(|number| *number > 0.0 && *number <= most);
    number.ok_or_else(|| format!("give a number above 0, at most {most}"))
}
