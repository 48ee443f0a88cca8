//! Several nodes on one PostgreSQL: they are killed, paused, cut off from the database and stopped in order, and the database crashes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::super::counterpart::journal::Post;
use super::super::counterpart::{Does, On};
use super::audit::{Audit, export};
use super::number;
use super::town::{Size, Town};
use crate::harness::model::Model;
use crate::harness::{Premises, Server, later_address};
use tertulia::adapters::store::postgres::test_server::TestServer;

/// The longest that a round may take.
const ROUND: Duration = Duration::from_secs(40);
/// The pace of people, and of looking who is active.
const PACE: Duration = Duration::from_millis(50);
/// After so many seconds without its owner, the store was taken by another node.
const SURELY_TAKEN: u64 = 6;
/// The room of the console in which somebody writes without end.
const LOBBY: &str = "lobby";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_or_stopped_is_replaced_and_nothing_is_lost_or_doubled() {
    let Some(mut cluster) = Cluster::begin(2, 3).await else { return };

    cluster.round(Fault::Kill).await;
    cluster.round(Fault::Drain).await;

    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_finished_by_the_next_node_when_its_node_is_killed_in_the_middle() {
    let sentences: Vec<String> = (0..100).map(|number| format!("This story is long, and here is its part {number}.")).collect();
    let story = sentences.join(" ");
    let told = story.clone();
    let model = Model::start(move |body: &Value| match body["model"].as_str() {
        Some("main") => told.clone(),
        _ => "They call me.\nYES".to_owned(),
    })
    .await;
    let Some(mut cluster) = Cluster::begin_with(2, 1, |premises| model.serving(premises)).await else { return };
    let (discord, channel) = (&cluster.town.discord, cluster.town.channels[0].clone());
    // The first part is posted, but its node does not hear of it.
    let fault = discord.spoil(On { route: Some("execute_webhook"), ..On::default() }, Does::HangAfterwards);

    discord.say(channel.first_person(), channel.id, "Aria, tell us a story");
    discord.posts_in(channel.id, 1).await;
    cluster.ended.push(cluster.nodes[0].server.take().expect("it runs").kill().await);
    discord.lift(fault);
    let posts = discord.posts_in(channel.id, 3).await;
    let server = cluster.nodes[1].server();
    let mut watch = server.watch(&format!("discord:{}", channel.id), Some(0)).await;
    let statement = watch.event("statement").await;

    let parts: Vec<&str> = posts.iter().map(|post| post.content.trim()).collect();
    assert_eq!((parts.join(" "), statement["text"].as_str()), (story.clone(), Some(&*story)));
    assert_eq!(posts.iter().map(|post| term(&post.agent)).collect::<Vec<_>>(), [1, 2, 2]);
    server.rest(&format!("discord:{}", channel.id)).await;
    assert_eq!(discord.posts_in(channel.id, 3).await.len(), 3);
    cluster.stop().await;
}

/// `cargo test --release --test it -- --ignored --nocapture fifty_rounds` prints the results after about five minutes. `ROUNDS`, `NODES`, `SEED`
/// and `FAULT` change it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes five minutes"]
async fn fifty_rounds_of_faults_of_nodes_and_database_lose_and_double_nothing() {
    let seed = number("SEED", 1);
    let Some(mut cluster) = Cluster::begin(number("NODES", 3) as usize, seed).await else { return };
    let mut chance = StdRng::seed_from_u64(seed);

    for round in 1..=number("ROUNDS", 50) {
        let fault = Fault::any(&mut chance);
        let took = cluster.round(fault).await;
        println!("round {round}: {fault:?}: {:.1} s until the next word", took.as_secs_f64());
    }

    cluster.end().await;
}

/// `cargo test --release --test it -- --ignored --nocapture rolling_upgrade` prints the results.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn a_rolling_upgrade_of_three_nodes_has_no_gap() {
    let Some(mut cluster) = Cluster::begin(3, number("SEED", 1)).await else { return };

    for _ in 0..3 {
        cluster.round(Fault::Drain).await;
    }

    cluster.end().await;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The active node is killed.
    Kill,
    /// A node that stands by is killed.
    KillStandby,
    /// The active node stops for so many seconds, as a machine does that is moved.
    Pause(u64),
    /// The active node loses its connections to the database for so many seconds; nothing answers.
    CutOff(u64),
    /// The database is killed, and starts again after so many seconds.
    Database(u64),
    /// The active node gets SIGTERM.
    Drain,
}

impl Fault {
    /// One that the seed chooses, or the one that `FAULT` names.
    fn any(chance: &mut StdRng) -> Self {
        const NAMES: [&str; 6] = ["kill", "standby", "pause", "cut", "database", "drain"];
        let named = std::env::var("FAULT").ok().and_then(|named| NAMES.iter().position(|name| *name == named));
        match named.unwrap_or_else(|| chance.random_range(0..NAMES.len())) {
            0 => Self::Kill,
            1 => Self::KillStandby,
            2 => Self::Pause(chance.random_range(1..=20)),
            3 => Self::CutOff(chance.random_range(1..=12)),
            4 => Self::Database(chance.random_range(0..=12)),
            _ => Self::Drain,
        }
    }
}

/// A node, with its way to the database.
struct Node {
    premises: Premises,
    url: String,
    link: Link,
    server: Option<Server>,
}

/// The way to the database. It can be cut, so that nothing passes and nothing ends.
struct Link {
    /// How often it was cut, and whether it is.
    cut: watch::Sender<(u64, bool)>,
    address: String,
    task: JoinHandle<()>,
}

/// Somebody who writes in the console's room, to whichever node is ready.
struct Writer {
    /// The messages that were accepted, with their numbers.
    accepted: Arc<Mutex<BTreeMap<String, u64>>>,
    stop: watch::Sender<bool>,
    /// `None`: it has ended.
    task: Option<JoinHandle<()>>,
}

struct Cluster {
    database: Arc<TestServer>,
    town: Town,
    nodes: Vec<Node>,
    writer: Writer,
    took: BTreeMap<&'static str, Vec<Duration>>,
    /// The logs of servers that have ended, each with the fault.
    ended: Vec<String>,
}

impl Link {
    async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (cut, state) = watch::channel((0, false));
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (socket, mut state) = (socket.clone(), state.clone());
                tokio::spawn(async move {
                    let begun = state.borrow_and_update().0;
                    // While it is cut, nothing answers. Whatever was connected before is lost.
                    if state.wait_for(|(_, is_cut)| !is_cut).await.is_err() || state.borrow().0 != begun {
                        return;
                    }
                    let Ok(mut server) = UnixStream::connect(socket).await else { return };
                    let cut = async {
                        let _ = state.wait_for(|(times, _)| *times != begun).await;
                    };
                    let is_cut = tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => false,
                        () = cut => true,
                    };
                    if is_cut {
                        // The database hears nothing either, until the way is there again.
                        let _ = state.wait_for(|(_, is_cut)| !is_cut).await;
                    }
                });
            }
        });
        Self { cut, address, task }
    }

    fn set_cut(&self, is_cut: bool) {
        self.cut.send_modify(|(times, state)| {
            *times += u64::from(is_cut);
            *state = is_cut;
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    async fn new(name: &str, database: &TestServer, premises: Premises) -> Self {
        let link = Link::to(database.socket_folder().join(".s.PGSQL.5432")).await;
        // It serves at the same address whenever it is started.
        let listen = later_address();
        let url = format!("http://{listen}");
        let premises = premises
            .with("server.listen", &listen)
            .with("storage.engine", "postgres")
            .with("storage.url", &format!("postgresql://postgres@{}/postgres", link.address))
            .with("cluster.name", name)
            .with("cluster.address", &url);
        Self { premises, url, link, server: None }
    }

    fn start(&mut self) {
        self.server = Some(Server::beginning(self.premises.command(&[]), self.url.clone()));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    async fn is_ready(&self, http: &reqwest::Client) -> bool {
        is_ready(&self.url, http).await
    }
}

async fn is_ready(url: &str, http: &reqwest::Client) -> bool {
    let answer = http.get(format!("{url}/readyz")).timeout(Duration::from_millis(500)).send().await;
    answer.is_ok_and(|answer| answer.status() == 200)
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client")
}

impl Writer {
    fn begin(urls: Vec<String>) -> Self {
        let accepted = Arc::<Mutex<BTreeMap<String, u64>>>::default();
        let (stop, stopped) = watch::channel(false);
        let noted = accepted.clone();
        let task = tokio::spawn(async move {
            let (http, mut number, mut at, mut ticks) = (client(), 0, 0, interval(PACE));
            while !*stopped.borrow() {
                let (id, text) = (format!("w{number}"), format!("this is note {number}"));
                let message = json!({ "from": "Writer", "text": text, "id": id });
                let url = format!("{}/api/rooms/{LOBBY}/messages", urls[at]);
                let sent = http.post(url).json(&message).timeout(Duration::from_secs(5)).send().await;
                let answer = match sent {
                    Ok(answer) if answer.status() == 202 => answer.json::<serde_json::Value>().await.ok(),
                    _ => None,
                };
                match answer.and_then(|answer| answer["seq"].as_u64()) {
                    Some(seq) => {
                        noted.lock().insert(text, seq);
                        number += 1;
                    }
                    None => at = (at + 1) % urls.len(),
                }
                ticks.tick().await;
            }
        });
        Self { accepted, stop, task: Some(task) }
    }

    /// Ends it. The messages that were accepted, with their numbers.
    async fn end(&mut self) -> BTreeMap<String, u64> {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            task.await.expect("it ends");
        }
        std::mem::take(&mut *self.accepted.lock())
    }
}

impl Cluster {
    /// `None`: PostgreSQL is not installed.
    async fn begin(nodes: usize, seed: u64) -> Option<Self> {
        Self::begin_with(nodes, seed, |premises| premises).await
    }

    /// The same with other settings.
    async fn begin_with(nodes: usize, seed: u64, change: impl Fn(Premises) -> Premises) -> Option<Self> {
        let database = Arc::new(TestServer::new()?);
        let town = Town::new(Size { guilds: 3, shards: 1 }, seed).await;
        let mut made = Vec::new();
        for name in ["a", "b", "c", "d"].into_iter().take(nodes) {
            let premises = town.premises().with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = ["aria"] }]"#);
            made.push(Node::new(name, &database, change(premises)).await);
        }
        let writer = Writer::begin(made.iter().map(|node| node.url.clone()).collect());
        let mut cluster = Self { database, town, nodes: made, writer, took: BTreeMap::new(), ended: Vec::new() };
        cluster.nodes[0].start();
        cluster.active().await;
        cluster.town.load_rooms().await;
        cluster.nodes.iter_mut().skip(1).for_each(Node::start);
        Some(cluster)
    }

    /// The node that runs the channels, once one does.
    async fn active(&self) -> usize {
        let (http, mut ticks) = (client(), interval(PACE));
        let found = async {
            loop {
                for (index, node) in self.nodes.iter().enumerate() {
                    if node.server.is_some() && node.is_ready(&http).await {
                        return index;
                    }
                }
                ticks.tick().await;
            }
        };
        timeout(ROUND, found).await.unwrap_or_else(|_| panic!("no node became active: {}", self.logs()))
    }

    fn logs(&self) -> String {
        let logs = self.nodes.iter().filter_map(|node| node.server.as_ref());
        logs.map(|server| server.log_lines_with("").join("\n")).collect::<Vec<_>>().join("\n---\n")
    }

    /// Injects a fault while people talk, and waits until companions talk again and everything is back. Returns how long nobody talked.
    async fn round(&mut self, fault: Fault) -> Duration {
        let active = self.active().await;
        let (began, posted) = (Instant::now(), self.town.discord.posts().len());
        let mut talking = Talking::begin(&mut self.town).await;
        let end = self.nodes.len();
        let until = |duration: u64| began + Duration::from_secs(duration);
        let (mut back, mut stopping) = (None, None);
        match fault {
            Fault::Kill => self.ended.push(self.nodes[active].server.take().expect("it runs").kill().await),
            Fault::Drain => {
                let server = self.nodes[active].server.take().expect("it runs");
                server.signal("TERM").await;
                stopping = Some(tokio::spawn(server.ended()));
            }
            Fault::KillStandby if end > 1 => {
                let standby = (active + 1) % end;
                self.ended.push(self.nodes[standby].server.take().expect("it runs").kill().await);
            }
            Fault::KillStandby => {}
            Fault::Pause(secs) => {
                self.nodes[active].server().signal("STOP").await;
                back = Some(until(secs));
            }
            Fault::CutOff(secs) => {
                self.nodes[active].link.set_cut(true);
                back = Some(until(secs));
            }
            Fault::Database(secs) => {
                let database = self.database.clone();
                tokio::task::spawn_blocking(move || database.crash()).await.expect("it ends");
                back = Some(until(secs));
            }
        }
        let injected = Instant::now();
        // Once another node takes over, the next word is its first one. Otherwise it is the first one after the fault.
        let was = self.town.discord.posts().last().map_or(0, |post| term(&post.agent));
        let is_replaced = match fault {
            Fault::Kill | Fault::Drain => true,
            Fault::Pause(secs) | Fault::CutOff(secs) => secs > SURELY_TAKEN,
            Fault::KillStandby | Fault::Database(_) => false,
        };
        let mut since = injected;
        let word = loop {
            talking.tick(&mut self.town).await;
            if back.is_some_and(|back| Instant::now() >= back) {
                back = None;
                self.lift(fault, active).await;
                since = if is_replaced { injected } else { Instant::now() };
            }
            let is_next = |post: &Post| post.at > since && (!is_replaced || term(&post.agent) > was);
            let next = self.town.discord.posts().into_iter().skip(posted).find(is_next);
            if let Some(post) = next
                && back.is_none()
            {
                break post.at;
            }
            assert!(began.elapsed() < ROUND, "{fault:?}: nobody talked again: {}", self.logs());
        };
        if let Some(stopping) = stopping {
            let (status, log) = stopping.await.expect("it ends");
            assert!(status.success(), "{status}: {log}");
            self.ended.push(log);
        }
        // A node that was started while the database was away has ended, and its supervisor starts it again.
        for node in &mut self.nodes {
            if node.server.as_mut().is_none_or(Server::has_ended) {
                self.ended.extend(node.server.as_ref().map(|server| server.log_lines_with("").join("\n")));
                node.start();
            }
        }
        let took = word - since;
        let kind = match fault {
            Fault::Kill => "kill",
            Fault::KillStandby => "kill of a standby",
            Fault::Pause(_) | Fault::CutOff(_) if !is_replaced => "short pause or cut, from its end",
            Fault::Pause(_) => "pause",
            Fault::CutOff(_) => "cut off",
            Fault::Database(_) => "database, from its return",
            Fault::Drain => "drain",
        };
        self.took.entry(kind).or_default().push(took);
        took
    }

    async fn lift(&mut self, fault: Fault, active: usize) {
        match fault {
            Fault::Pause(_) => self.nodes[active].server().signal("CONT").await,
            Fault::CutOff(_) => self.nodes[active].link.set_cut(false),
            Fault::Database(_) => {
                let database = self.database.clone();
                tokio::task::spawn_blocking(move || database.start()).await.expect("it starts");
            }
            Fault::Kill | Fault::KillStandby | Fault::Drain => {}
        }
    }

    /// Waits until everything is at rest, and compares.
    async fn end(mut self) {
        let accepted = self.writer.end().await;
        let active = self.active().await;
        self.town.discord.sessions(1).await;
        let server = self.nodes[active].server.take().expect("it runs");
        for (channel, id) in self.town.final_messages() {
            let mut watch = server.watch(&format!("discord:{channel}"), Some(0)).await;
            while watch.event("message").await["id"] != id.to_string() {}
        }
        let audit = Audit::of(&self.town, &server).await;
        println!("{audit}");
        let history = server.history(LOBBY).await;
        let noted: BTreeMap<u64, &str> =
            history.iter().filter(|(_, from, _)| from == "Writer").map(|(seq, _, text)| (*seq, &**text)).collect();
        let lost: Vec<_> = accepted.iter().filter(|(text, seq)| noted.get(seq) != Some(&&***text)).collect();
        let mut texts: Vec<_> = noted.values().collect();
        texts.sort_unstable();
        let doubled = texts.windows(2).filter(|two| two[0] == two[1]).count();
        let mut gaps = 0;
        for room in self.town.channels.iter().map(|channel| format!("discord:{}", channel.id)).chain([LOBBY.to_owned()]) {
            let events = export(&server, &room).await;
            let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
            assert!(!numbers.is_empty(), "{room} has events");
            gaps += numbers.windows(2).filter(|two| two[1] != two[0] + 1).count();
        }
        let terms: Vec<u64> = self.town.discord.posts().iter().map(|post| term(&post.agent)).collect();
        let late = terms.windows(2).filter(|two| two[1] < two[0]).count();
        let nodes = server.get("/api/nodes").await;
        let identifies = self.town.discord.identifies();
        println!("accepted on the console {}, lost {}, doubled {doubled}; gaps in journals {gaps}", accepted.len(), lost.len());
        println!("posts {} under {} terms, of an older term after a newer {late}", terms.len(), distinct(&terms));
        println!("IDENTIFYs {identifies}; {nodes}");
        for (kind, took) in &mut self.took {
            took.sort_unstable();
            let at = |share: usize| took[(took.len() * share).div_ceil(100) - 1].as_secs_f64();
            println!("{kind}: {} times, next word after p50 {:.1} s, p99 {:.1} s", took.len(), at(50), at(99));
        }
        if audit.has_faults() || std::env::var_os("LOGS").is_some() {
            println!("{}\n---\n{}\n---\n{}", server.log_lines_with("").join("\n"), self.logs(), self.ended.join("\n---\n"));
        }
        assert!(lost.is_empty() && doubled == 0 && late == 0 && gaps == 0, "{lost:?}");
        assert!(!accepted.is_empty() && distinct(&terms) > 1);
        audit.assert_faultless();
        server.stop().await;
        self.stop().await;
    }

    async fn stop(mut self) {
        self.writer.end().await;
        for node in &mut self.nodes {
            if let Some(mut server) = node.server.take()
                && !server.has_ended()
            {
                server.stop().await;
            }
        }
    }
}

fn distinct(terms: &[u64]) -> usize {
    terms.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// The term that a post was made under: the last word of `DiscordBot (…, …) (node term)`.
fn term(agent: &str) -> u64 {
    let last = agent.rsplit(' ').next().and_then(|word| word.strip_suffix(')'));
    last.and_then(|term| term.parse().ok()).unwrap_or_else(|| panic!("no term in {agent:?}"))
}

/// People who talk, one message at a time.
struct Talking(tokio::time::Interval);

impl Talking {
    async fn begin(town: &mut Town) -> Self {
        let mut ticks = interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for _ in 0..10 {
            town.say();
        }
        Self(ticks)
    }

    async fn tick(&mut self, town: &mut Town) {
        self.0.tick().await;
        town.say();
    }
}
