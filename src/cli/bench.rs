//! `tertulia bench`: says things to a system as many people would, and tells how much it takes and how long that takes.

mod figures;
mod http;
mod inside;
mod instant;
mod load;
mod minutes;
mod report;
mod talk;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use super::asking::{ask_with, print};
use super::client::block_on;
use super::failure::Failure;
use super::whom::{self, Whom};
use crate::ports::backend::room::MOST_IN_A_ROOM;
use crate::settings::{Loaded, Sources};
use crate::telemetry::{self, Plans};
use http::Http;
use inside::Inside;
use load::{Listener, Pace, Recent, Taken};
use minutes::{Minute, Watched};
use report::{Asked, Measured, Report};
use talk::Talk;

/// Rooms that are made or looked at together, and calls of an instant model.
const AT_A_TIME: usize = 256;
/// The seed of the talk.
const SEED: u64 = 1;

const EXAMPLES: &str = "\
Examples:
  tertulia bench                                     1,000 messages a second for 20 s, in this process
  tertulia bench --flat-out 512 --channels 1000      as much as it takes
  tertulia bench --rate 3000 --secs 1800 --data soak  for half an hour, told every minute; the store is kept
  tertulia bench --http --rate 500 --json            through the HTTP API of a server that is started for this
  tertulia bench --server http://10.0.0.7:7878       through that of a server that runs: it stores what is said

Without --server everything is stored in a folder of its own that is deleted at the end, models answer at once, and no budget stands in the way.
Times count from when a message was to be said, not from when it could be.

Exit codes:
  0  done
  1  failed
  2  wrong usage or wrong settings
  3  the store cannot be used";

/// What is asked for.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    /// Messages a second, whatever becomes of them
    #[arg(long, default_value_t = 1_000.0, value_name = "N", value_parser = rate)]
    pub rate: f64,
    /// Instead: so many messages on their way at a time, the next as soon as one is taken
    #[arg(long, conflicts_with = "rate", value_name = "N", value_parser = at_a_time)]
    pub flat_out: Option<NonZeroUsize>,
    /// How long it is measured
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    pub secs: f64,
    /// How long it is talked before it is measured
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    pub warm_up_secs: f64,
    /// Rooms that are talked in
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = count)]
    pub channels: u32,
    /// Guilds that they are in
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = count)]
    pub guilds: u32,
    /// Companions in each room: the first of those that are configured
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = in_a_room)]
    pub companions: u32,
    /// Go through the HTTP API of a server that is started for this
    #[arg(long, conflicts_with = "server")]
    pub http: bool,
    /// Go through the HTTP API of this server; its rooms bench-0, bench-1, … are made and stay
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Store in this folder, which is new and stays [default: one among the temporary ones, which is deleted]
    #[arg(long, conflicts_with = "server", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Tell so often on stderr how it goes
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    pub every_secs: f64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Talks, and prints what came of it.
pub fn run(sources: &Sources, asked: &Bench) -> ExitCode {
    if asked.http || asked.server.is_some() {
        return ask_with(sources, |loaded| block_on(over_http(&loaded, sources, asked)));
    }
    match crate::settings::load(sources) {
        Ok(loaded) => within(loaded, asked).map_or_else(Failure::tell, |()| ExitCode::SUCCESS),
        Err(problems) => super::check::complain(&problems),
    }
}

/// The rooms that are talked in.
struct Rooms {
    channels: usize,
    guilds: usize,
    companions: Vec<String>,
}

impl Rooms {
    /// Of a cast of ids, the first so many.
    fn of(asked: &Bench, cast: &[String]) -> Result<Self, Failure> {
        let companions = asked.companions as usize;
        let known = cast.get(..companions).ok_or_else(|| {
            let there = cast.len();
            Failure::Usage(format!(
                "--companions {companions}: {there} are configured ({}); configure more in config/companions, or ask for fewer",
                if cast.is_empty() { "none".to_owned() } else { cast.join(", ") }
            ))
        })?;
        let (channels, guilds) = (asked.channels as usize, asked.guilds.min(asked.channels) as usize);
        Ok(Self { channels, guilds, companions: known.to_vec() })
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

    fn tell(&self, way: &'static str, rooms: &Rooms, taken: &Taken, measured: Measured) -> Result<(), Failure> {
        let asked =
            Asked { way, channels: rooms.channels, guilds: rooms.guilds, companions: rooms.companions.len(), pace: self.pace() };
        let report = Report::of(asked, taken, measured);
        if self.json {
            let object = serde_json::to_value(&report).map_err(|error| Failure::Failed(format!("the report: {error}")))?;
            return print(&object);
        }
        print(&report.to_string().trim_end())?;
        match &self.data {
            Some(kept) => print(&format!(
                "{:<22}{}; TERTULIA__STORAGE__PATH={} tertulia history compact tells what of it can be given back",
                "kept in",
                kept.display(),
                kept.display()
            )),
            None => Ok(()),
        }
    }

    /// Talks while it is measured, and tells meanwhile how it goes.
    async fn measure<S: Listener + Watched>(&self, system: &S, people: &mut Talk) -> (Taken, Vec<Minute>) {
        let recent = Recent::default();
        let mut is_first = true;
        let tell = |minute: &Minute| {
            if std::mem::take(&mut is_first) {
                eprintln!("{}", Minute::HEAD);
            }
            eprintln!("{minute}");
        };
        let every = Duration::from_secs_f64(self.every_secs);
        minutes::along(load::talk(system, people, self.pace(), self.span(), &recent), system, &recent, every, tell).await
    }
}

/// In this process.
fn within(loaded: Loaded, asked: &Bench) -> Result<(), Failure> {
    let folder = Folder::new(asked.data.as_deref())?;
    let plans = Plans::from_variables(|name| std::env::var(name).ok());
    // Lines are written as ever, to nowhere.
    let (subscriber, telemetry) = telemetry::build(&loaded.settings.telemetry, plans, io::sink, false)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let cast: Vec<_> = loaded.companions.keys().map(|id| id.as_str().to_owned()).collect();
    let rooms = Rooms::of(asked, &cast)?;
    let names = loaded.companions.values().take(rooms.companions.len()).map(|companion| companion.name.to_string()).collect();
    // In a process where somebody else has set one, that is heard.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("the runtime cannot be made: {error}")))?;
    let mut people = Talk::new(SEED, rooms.channels, names);
    // Whoever talks has a thread of its own, as connections have beside the actors.
    let outcome = runtime.block_on(async {
        let mut system = Inside::start(loaded, &folder.path, &telemetry).await?;
        let at_first = system.figures().await?;
        system.make(&rooms).await?;
        load::talk(&system, &mut people, asked.pace(), asked.warm_up(), &Recent::default()).await;
        system.catch_up().await?;
        let before = system.figures().await?;
        let (taken, minutes) = asked.measure(&system, &mut people).await;
        let over = Instant::now();
        system.catch_up().await?;
        let caught_up = over.elapsed();
        let after = system.figures().await?;
        system.stop().await;
        Ok::<_, Failure>((taken, Measured { at_first, before, after, caught_up, minutes }))
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    telemetry.shutdown();
    let (taken, measured) = outcome?;
    asked.tell("inbound port", &rooms, &taken, measured)
}

/// Through the HTTP API.
async fn over_http(loaded: &Loaded, sources: &Sources, asked: &Bench) -> Result<(), Failure> {
    let folder;
    let server = match &asked.server {
        Some(named) => match whom::find(loaded, Some(named))? {
            Whom::Server(client) => Http::to(client),
            Whom::Store => return Err(Failure::Usage(format!("--server {named}: nobody is there"))),
        },
        None => {
            folder = Folder::new(asked.data.as_deref())?;
            Http::start(sources, &folder.path)?
        }
    };
    let cast = server.cast().await?;
    let ids: Vec<_> = cast.iter().map(|(id, _)| id.clone()).collect();
    let rooms = Rooms::of(asked, &ids)?;
    let names = cast.into_iter().take(rooms.companions.len()).map(|(_, name)| name).collect();
    let mut people = Talk::new(SEED, rooms.channels, names);
    let at_first = server.figures().await?;
    server.make(&rooms).await?;
    load::talk(&server, &mut people, asked.pace(), asked.warm_up(), &Recent::default()).await;
    server.catch_up(&rooms).await?;
    let before = server.figures().await?;
    let (taken, minutes) = asked.measure(&server, &mut people).await;
    let over = Instant::now();
    server.catch_up(&rooms).await?;
    let caught_up = over.elapsed();
    let after = server.figures().await?;
    asked.tell("HTTP", &rooms, &taken, Measured { at_first, before, after, caught_up, minutes })
}

/// A folder for a store, which is new.
struct Folder {
    path: PathBuf,
    is_temporary: bool,
}

impl Folder {
    fn new(named: Option<&Path>) -> Result<Self, Failure> {
        let path =
            named.map_or_else(|| std::env::temp_dir().join(format!("tertulia-bench-{}", std::process::id())), Path::to_path_buf);
        std::fs::create_dir(&path).map_err(|error| {
            Failure::Usage(format!("{} cannot be made: {error}; name a folder in --data that is not there yet", path.display()))
        })?;
        Ok(Self { path, is_temporary: named.is_none() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            // It lies among temporary files, where the system cleans up.
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
    whole(given, 0, MOST_IN_A_ROOM as u32).map_err(|told| format!("{told}: no more fit into a room"))
}

fn at_a_time(given: &str) -> Result<NonZeroUsize, String> {
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
