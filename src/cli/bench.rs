//! `tertulia bench`: sends messages as many people would, and measures throughput and latency.

mod chatter;
mod figures;
mod http;
mod in_process;
mod instant;
mod load;
mod minutes;
mod report;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use super::access::{self, Access};
use super::client::block_on;
use super::command_io::{print, run_with_settings};
use super::failure::Failure;
use crate::ports::backend::room::MOST_IN_A_ROOM;
use crate::settings::{Loaded, Sources};
use crate::telemetry::{self, Plans};
use chatter::Chatter;
use http::Http;
use in_process::InProcess;
use load::{LoadResult, Pace, Recent, Target};
use minutes::{Minute, Monitored};
use report::{Measured, Plan, Report};

/// How many rooms are created or queried concurrently, and how many calls the instant model serves concurrently.
const CONCURRENCY: usize = 256;
/// The seed of the generated messages.
const SEED: u64 = 1;

const EXAMPLES: &str = "\
Examples:
  tertulia bench                                     1,000 messages a second for 20 s, in this process
  tertulia bench --flat-out 512 --channels 1000      as much as possible, with 512 messages in flight
  tertulia bench --rate 3000 --secs 1800 --data soak  for half an hour, with a report every minute; the store stays in soak
  tertulia bench --http --rate 500 --json            through the HTTP API of a server that is started for this run
  tertulia bench --server http://10.0.0.7:7878       through the HTTP API of a running server, which stores the messages

Without --server everything is stored in a temporary folder that is deleted at the end, models answer at once, and budgets do not apply.
A message's latency counts from the time when it was due, even if it was sent later.

Exit codes:
  0  done
  1  failed
  2  wrong usage or wrong settings
  3  the store cannot be used";

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    /// Messages a second, sent at this rate even if earlier ones are not accepted yet
    #[arg(long, default_value_t = 1_000.0, value_name = "N", value_parser = rate)]
    pub rate: f64,
    /// Instead of a rate: keep this number of messages in flight, and send the next as soon as one is accepted
    #[arg(long, conflicts_with = "rate", value_name = "N", value_parser = in_flight)]
    pub flat_out: Option<NonZeroUsize>,
    /// Duration of the measurement
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    pub secs: f64,
    /// Duration of the load before the measurement
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    pub warm_up_secs: f64,
    /// Number of rooms
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = count)]
    pub channels: u32,
    /// Number of guilds that the rooms are in
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = count)]
    pub guilds: u32,
    /// Companions in each room: the first of the configured ones
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = in_a_room)]
    pub companions: u32,
    /// Use the HTTP API of a server that is started for this run
    #[arg(long, conflicts_with = "server")]
    pub http: bool,
    /// Use the HTTP API of this server; the rooms bench-0, bench-1, … are created in it and remain
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Store in this new folder and keep it [default: a temporary folder, deleted at the end]
    #[arg(long, conflicts_with = "server", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Interval between progress lines on stderr
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    pub every_secs: f64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Applies the load, and prints the report.
pub fn run(sources: &Sources, options: &Bench) -> ExitCode {
    if options.http || options.server.is_some() {
        return run_with_settings(sources, |loaded| block_on(over_http(&loaded, sources, options)));
    }
    match crate::settings::load(sources) {
        Ok(loaded) => in_this_process(loaded, options).map_or_else(Failure::report, |()| ExitCode::SUCCESS),
        Err(problems) => super::check::complain(&problems),
    }
}

struct Rooms {
    channels: usize,
    guilds: usize,
    companions: Vec<String>,
}

impl Rooms {
    /// Takes as many companions as are asked for from the start of the cast, a list of ids.
    fn plan(options: &Bench, cast: &[String]) -> Result<Self, Failure> {
        let count = options.companions as usize;
        let companions = cast.get(..count).ok_or_else(|| {
            let configured = cast.len();
            Failure::Usage(format!(
                "--companions {count}: {configured} are configured ({}); configure more in config/companions, or ask for fewer",
                if cast.is_empty() { "none".to_owned() } else { cast.join(", ") }
            ))
        })?;
        let (channels, guilds) = (options.channels as usize, options.guilds.min(options.channels) as usize);
        Ok(Self { channels, guilds, companions: companions.to_vec() })
    }

    fn name(number: usize) -> String {
        format!("bench-{number}")
    }

    fn guild(&self, number: usize) -> String {
        format!("bench-{}", number % self.guilds)
    }

    fn companions(&self, _: usize) -> &[String] {
        &self.companions
    }
}

impl Bench {
    fn pace(&self) -> Pace {
        self.flat_out.map_or(Pace::Rate(self.rate), Pace::FlatOut)
    }

    fn span(&self) -> Duration {
        Duration::from_secs_f64(self.secs)
    }

    fn warm_up(&self) -> Duration {
        Duration::from_secs_f64(self.warm_up_secs)
    }

    fn print_report(&self, way: &'static str, rooms: &Rooms, result: &LoadResult, measured: Measured) -> Result<(), Failure> {
        let plan =
            Plan { way, channels: rooms.channels, guilds: rooms.guilds, companions: rooms.companions.len(), pace: self.pace() };
        let report = Report::of(plan, result, measured);
        if self.json {
            let object = serde_json::to_value(&report).map_err(|error| Failure::Failed(format!("the report: {error}")))?;
            return print(&object);
        }
        print(&report.to_string().trim_end())?;
        match &self.data {
            Some(data) => print(&format!(
                "{:<22}{}; TERTULIA__STORAGE__PATH={} tertulia history compact shows how much of it can be freed",
                "stored in",
                data.display(),
                data.display()
            )),
            None => Ok(()),
        }
    }

    /// Applies the measured load, and prints progress lines during it.
    async fn measure<S: Target + Monitored>(&self, system: &S, chatter: &mut Chatter) -> (LoadResult, Vec<Minute>) {
        let recent = Recent::default();
        let mut is_first = true;
        let show = |minute: &Minute| {
            if std::mem::take(&mut is_first) {
                eprintln!("{}", Minute::HEAD);
            }
            eprintln!("{minute}");
        };
        let every = Duration::from_secs_f64(self.every_secs);
        minutes::observe(load::apply(system, chatter, self.pace(), self.span(), &recent), system, &recent, every, show).await
    }
}

fn in_this_process(loaded: Loaded, options: &Bench) -> Result<(), Failure> {
    let folder = Folder::new(options.data.as_deref())?;
    let plans = Plans::new(&loaded.settings.telemetry, |name| std::env::var(name).ok());
    // Log lines are formatted as in a server, so that their cost counts, and are then dropped.
    let (subscriber, telemetry) = telemetry::build(&loaded.settings.telemetry, plans, io::sink, false)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let cast: Vec<_> = loaded.companions.keys().map(|id| id.as_str().to_owned()).collect();
    let rooms = Rooms::plan(options, &cast)?;
    let names = loaded.companions.values().take(rooms.companions.len()).map(|companion| companion.name.to_string()).collect();
    // If the process has a global subscriber already, that one stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("the runtime cannot be started: {error}")))?;
    let mut chatter = Chatter::new(SEED, rooms.channels, names);
    // `block_on` runs the load on this thread, beside the actors' threads.
    let outcome = runtime.block_on(async {
        let mut system = InProcess::start(loaded, &folder.path, &telemetry).await?;
        let at_first = system.figures().await?;
        system.create_rooms(&rooms).await?;
        load::apply(&system, &mut chatter, options.pace(), options.warm_up(), &Recent::default()).await;
        system.catch_up().await?;
        let before = system.figures().await?;
        let (result, minutes) = options.measure(&system, &mut chatter).await;
        let over = Instant::now();
        system.catch_up().await?;
        let caught_up = over.elapsed();
        let after = system.figures().await?;
        system.stop().await;
        Ok::<_, Failure>((result, Measured { at_first, before, after, caught_up, minutes }))
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    telemetry.shutdown();
    let (result, measured) = outcome?;
    options.print_report("inbound port", &rooms, &result, measured)
}

async fn over_http(loaded: &Loaded, sources: &Sources, options: &Bench) -> Result<(), Failure> {
    let folder;
    let server = match &options.server {
        Some(named) => match access::find(loaded, Some(named))? {
            Access::Server(client) => Http::to(client),
            Access::Store => return Err(Failure::Usage(format!("--server {named}: no server there"))),
        },
        None => {
            folder = Folder::new(options.data.as_deref())?;
            Http::start(sources, &folder.path)?
        }
    };
    let cast = server.cast().await?;
    let ids: Vec<_> = cast.iter().map(|(id, _)| id.clone()).collect();
    let rooms = Rooms::plan(options, &ids)?;
    let names = cast.into_iter().take(rooms.companions.len()).map(|(_, name)| name).collect();
    let mut chatter = Chatter::new(SEED, rooms.channels, names);
    let at_first = server.figures().await?;
    server.create_rooms(&rooms).await?;
    load::apply(&server, &mut chatter, options.pace(), options.warm_up(), &Recent::default()).await;
    server.catch_up(&rooms).await?;
    let before = server.figures().await?;
    let (result, minutes) = options.measure(&server, &mut chatter).await;
    let over = Instant::now();
    server.catch_up(&rooms).await?;
    let caught_up = over.elapsed();
    let after = server.figures().await?;
    options.print_report("HTTP", &rooms, &result, Measured { at_first, before, after, caught_up, minutes })
}

/// A new folder for a store.
struct Folder {
    path: PathBuf,
    is_temporary: bool,
}

impl Folder {
    fn new(named: Option<&Path>) -> Result<Self, Failure> {
        let path =
            named.map_or_else(|| std::env::temp_dir().join(format!("tertulia-bench-{}", std::process::id())), Path::to_path_buf);
        std::fs::create_dir(&path).map_err(|error| {
            Failure::Usage(format!(
                "{} cannot be created: {error}; name a folder in --data that does not exist yet",
                path.display()
            ))
        })?;
        Ok(Self { path, is_temporary: named.is_none() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            // If this fails, the system cleans up its temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn rate(given: &str) -> Result<f64, String> {
    positive(given, 1_000_000.0)
}

fn seconds(given: &str) -> Result<f64, String> {
    positive(given, 86_400.0)
}

fn count(given: &str) -> Result<u32, String> {
    whole(given, 1, 1_000_000)
}

fn in_a_room(given: &str) -> Result<u32, String> {
    whole(given, 0, MOST_IN_A_ROOM as u32).map_err(|error| format!("{error}: no more fit into a room"))
}

fn in_flight(given: &str) -> Result<NonZeroUsize, String> {
    count(given).and_then(|number| NonZeroUsize::new(number as usize).ok_or_else(|| "give 1 or more".to_owned()))
}

fn whole(given: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = given.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("give a whole number from {least} to {most}"))
}

fn positive(given: &str, most: f64) -> Result<f64, String> {
    let number: f64 = given.parse().map_err(|_| "give a number".to_owned())?;
    if number > 0.0 && number <= most { Ok(number) } else { Err(format!("give more than 0 and at most {most}")) }
}
