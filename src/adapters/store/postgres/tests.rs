use std::sync::Arc;

use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use super::test_server::TestServer;
use super::*;
use crate::adapters::system::SystemRng;
use crate::conformance::{Subject, WARD, append, conformance, journal, put, taken, value, writes};
use crate::ports::rng::Rng as _;
use crate::telemetry::instruments::Instruments;

conformance!(found: OnServer::new().await);

/// A store in a schema of its own.
struct OnServer {
    store: Option<PostgresStore>,
    url: SecretString,
    folder: TempDir,
    server: Arc<TestServer>,
}

impl OnServer {
    async fn new() -> Option<Self> {
        Some(Self::on(TestServer::shared()?).await)
    }

    async fn on(server: Arc<TestServer>) -> Self {
        let (url, folder) = (server.empty().await, tempfile::tempdir().unwrap());
        let store = Some(opened(&folder, &url).unwrap());
        Self { store, url, folder, server }
    }

    /// Runs one statement on its tables.
    async fn sql(&self, statement: &str) {
        let session = Database::at(&self.url).unwrap().connect().await.unwrap();
        session.client.batch_execute(statement).await.unwrap();
    }

    /// The processes of the server in which a commit waits for a standby, or what settles one.
    async fn waiting_for_standby(&self) -> Vec<i32> {
        let waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep' and (query = 'commit' or query like '%owner = $1 returning term')";
        let rows = self.server.admin().await.client.query(waiting, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

impl Subject for OnServer {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(opened(&self.folder, &self.url).unwrap());
    }
}

/// Nobody loses this store, however busy the machine is.
fn opened(folder: &TempDir, url: &SecretString) -> Result<PostgresStore, OpenError> {
    let minutes = std::time::Duration::from_secs(600);
    node("a", folder, url, Times { lease: minutes, silent_for: minutes, ..Times::default() })
}

fn node(name: &str, folder: &TempDir, url: &SecretString, times: Times) -> Result<PostgresStore, OpenError> {
    let options = OpenOptions {
        accept_loss: false,
        deadline: std::time::Duration::from_secs(60),
        cache_bytes: 0,
        new_id: SystemRng.id(),
        instruments: Instruments::noop(),
        held: None,
    };
    let identity = Identity { name: name.to_owned(), address: format!("https://{name}.example.org") };
    PostgresStore::open_timed(folder.path(), url, &options, &identity, times)
}

/// Another node on the same database.
fn other(name: &str, url: &SecretString, times: Times) -> (PostgresStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (node(name, &folder, url, times).unwrap(), folder)
}

/// Owners live long, and who watches them has little patience: it takes a store that is owned, as after a long pause of its owner.
const IMPATIENT: Times = Times {
    beat_every: Duration::from_secs(600),
    lease: Duration::from_secs(600),
    silent_for: Duration::from_millis(300),
    look_every: Duration::from_millis(50),
    attempt: Duration::from_secs(10),
    hedge_after: Duration::from_secs(10),
};

/// A proxy in front of a server. It passes on nothing on connections that began before it was told to be silent.
struct Proxy {
    url: SecretString,
    silence: watch::Sender<()>,
}

impl Proxy {
    /// In front of an empty schema.
    async fn of(server: &TestServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, socket) = (listener.local_addr().unwrap().port(), server.socket_folder().join(".s.PGSQL.5432"));
        let own = server.empty().await;
        let (user, place) = own.expose_secret().split_once('@').unwrap();
        let url = format!("{user}@127.0.0.1:{port}/{}", place.split_once('/').unwrap().1).into();
        let silence = watch::Sender::new(());
        let silenced = silence.clone();
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let (mut to, mut silent) = (UnixStream::connect(&socket).await.unwrap(), silenced.subscribe());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut from, &mut to) => {}
                        // The connections stay open.
                        _ = silent.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { url, silence }
    }
}

#[tokio::test]
async fn a_host_that_answers_nothing_holds_up_no_other() {
    let Some(server) = TestServer::shared() else { return };
    // Connections wait in its queue for ever.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = server.empty().await;
    let own = own.expose_secret().split_once('@').unwrap();
    let url = format!("{}@127.0.0.1:{},localhost:1,{}", own.0, silent.local_addr().unwrap().port(), own.1).into();
    let folder = tempfile::tempdir().unwrap();

    let store = opened(&folder, &url).unwrap();
    let term = taken(&store).await;

    assert_eq!(store.commit(vec![append(term, 0, ["word"])]).await.unwrap(), [Ok(())]);
    assert_eq!(journal(&store).await, ["word"]);
}

// Opening a store blocks a thread, while the proxy needs one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_on_a_connection_that_is_silent_is_repeated_on_another() {
    let Some(server) = TestServer::shared() else { return };
    let (proxy, folder) = (Proxy::of(&server).await, tempfile::tempdir().unwrap());
    let store = node(
        "a",
        &folder,
        &proxy.url,
        Times { attempt: Duration::from_secs(1), hedge_after: Duration::from_millis(200), ..IMPATIENT },
    )
    .unwrap();
    let term = taken(&store).await;
    store.commit(vec![append(term, 0, ["word"])]).await.unwrap();
    for _ in 0..READERS {
        journal(&store).await;
    }

    proxy.silence.send_replace(());

    for _ in 0..READERS {
        assert_eq!(journal(&store).await, ["word"]);
    }
}

#[tokio::test]
async fn a_database_that_takes_longer_to_connect_to_than_to_answer_is_owned() {
    let Some(mut subject) = OnServer::new().await else { return };
    subject.store = None;
    let store = node("a", &subject.folder, &subject.url, Times { attempt: Duration::from_millis(1), ..IMPATIENT }).unwrap();

    timeout_at(Instant::now() + Duration::from_secs(60), store.own(None)).await.unwrap().unwrap();
}

#[tokio::test]
async fn only_a_server_that_knows_the_ownership_is_read() {
    let Some(mut subject) = OnServer::new().await else { return };
    subject.store = None;
    let url = format!("{}&application_name=stranger", subject.url.expose_secret()).into();
    let store = node("a", &subject.folder, &url, IMPATIENT).unwrap();
    taken(&store).await;
    let change = "update partition set owner = reverse(owner)";
    subject.sql(change).await;

    let mut reading = std::pin::pin!(journal(&store));
    let asked =
        "select 1 from pg_stat_activity where application_name = 'stranger' and query like '%and owner = $1' and state = 'idle'";
    while subject.server.admin().await.client.query(asked, &[]).await.unwrap().is_empty() {
        assert!(futures_util::poll!(reading.as_mut()).is_pending());
    }
    assert!(futures_util::poll!(reading.as_mut()).is_pending());
    subject.sql(change).await;

    assert!(reading.await.is_empty());
}

#[tokio::test]
async fn a_node_that_wakes_after_a_takeover_changes_nothing() {
    let Some(mut subject) = OnServer::new().await else { return };
    subject.store = None;
    subject.store = Some(node("a", &subject.folder, &subject.url, IMPATIENT).unwrap());
    let store = subject.store();
    let old = taken(store).await;
    store.commit(vec![append(old, 0, ["before"])]).await.unwrap();

    let (next, _folder) = other("b", &subject.url, IMPATIENT);
    next.own(None).await.unwrap();
    let refused = store.commit(vec![append(old, 1, ["late"])]).await.unwrap();
    let taken_again = store.acquire_ward(WARD).await;
    let new = taken(&next).await;
    next.commit(vec![append(new, 1, ["after"])]).await.unwrap();

    assert_eq!(refused, [Err(Refusal::OldTerm { ward: WARD, named: old, current: new })]);
    assert!(matches!(taken_again, Err(StoreError::Failed(detail)) if detail.contains("another node")));
    assert_eq!(journal(&next).await, ["before", "after"]);
}

#[tokio::test]
async fn a_store_that_is_given_back_is_taken_by_the_node_that_stands_by() {
    let Some(mut subject) = OnServer::new().await else { return };
    let old = taken(subject.store()).await;
    subject.store().commit(vec![append(old, 0, ["before"])]).await.unwrap();
    let (next, _folder) = other("b", &subject.url, Times { silent_for: Duration::from_secs(600), ..Times::default() });
    let standing_by = next.own(Some(Duration::ZERO)).await;

    let waiting = next.own(None);
    subject.store = None;
    waiting.await.unwrap();
    let new = taken(&next).await;
    next.commit(vec![append(new, 1, ["after"])]).await.unwrap();

    assert!(matches!(standing_by, Err(StoreError::Failed(detail)) if detail.contains("node a (https://a.example.org) owns")));
    assert!(new > old);
    assert_eq!(journal(&next).await, ["before", "after"]);
    let view = next.nodes();
    let owner = &view.partitions[0];
    assert_eq!((owner.owner.as_deref(), owner.term, next.lease().is_held()), (Some("b"), new.0, true));
    assert_eq!(view.nodes.iter().map(|node| (&*node.name, node.is_owner)).collect::<Vec<_>>(), [("b", true)]);
}

#[tokio::test]
async fn beats_rarely_update_the_row_of_the_node() {
    let Some(mut subject) = OnServer::new().await else { return };
    subject.store = None;
    let often = Times { beat_every: Duration::from_millis(1), ..Times::default() };
    let store = node("a", &subject.folder, &subject.url, often).unwrap();
    store.own(None).await.unwrap();
    let session = Database::at(&subject.url).unwrap().connect().await.unwrap();
    let beats = async || {
        let row = session.client.query_one("select partition.beat, node.beat from partition, node", &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };

    let mut both = beats().await;
    while both.0 < 40 {
        both = beats().await;
    }

    assert!(both.1 < both.0 / 4, "{both:?}");
    assert_eq!(store.nodes().nodes[0].silent_secs, 0);
}

#[tokio::test]
async fn an_owner_stops_when_the_database_is_away_and_owns_the_store_again_later() {
    let Some(server) = TestServer::new() else { return };
    let (server, folder) = (Arc::new(server), tempfile::tempdir().unwrap());
    let url = server.empty().await;
    let brief = Times { beat_every: Duration::from_millis(100), lease: Duration::from_millis(600), ..Times::default() };
    // Its own earlier ownership is not waited for.
    let store = node("a", &folder, &url, Times { silent_for: Duration::from_secs(3_600), ..brief }).unwrap();
    store.own(None).await.unwrap();
    let lease = store.lease();

    let old = taken(&store).await;
    let stopping = server.clone();
    tokio::task::spawn_blocking(move || stopping.crash()).await.unwrap();
    let (why, outcome) = tokio::join!(store.lost(), store.commit(vec![append(old, 0, ["word"])]));
    let held = lease.is_held();
    let starting = server.clone();
    let started = tokio::task::spawn_blocking(move || starting.start());
    store.own(None).await.unwrap();
    started.await.unwrap();
    let new = taken(&store).await;

    assert!(why.contains("in time") && outcome.is_err() && !held, "{why} {outcome:?}");
    assert!(new > old && lease.is_held());
    assert_eq!(store.commit(vec![append(new, 0, ["word"])]).await.unwrap(), [Ok(())]);
}

#[tokio::test]
async fn of_nodes_that_want_the_store_one_gets_it() {
    let Some(mut subject) = OnServer::new().await else { return };
    subject.store = None;
    let nodes = ["a", "b", "c", "d"].map(|name| other(name, &subject.url, Times::default()));

    let outcomes = futures_util::future::join_all(nodes.iter().map(|(node, _)| node.own(Some(Duration::ZERO)))).await;

    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
}

#[tokio::test]
async fn who_only_reads_ends_nobody() {
    let Some(subject) = OnServer::new().await else { return };
    let term = taken(subject.store()).await;
    let second = tempfile::tempdir().unwrap();

    let reader = opened(&second, &subject.url).unwrap();
    assert!(journal(&reader).await.is_empty());

    assert_eq!(subject.store().commit(vec![append(term, 0, ["one"])]).await.unwrap(), [Ok(())]);
}

#[tokio::test]
async fn a_server_that_crashes_and_comes_back_loses_and_doubles_nothing() {
    let Some(server) = TestServer::new() else { return };
    let server = Arc::new(server);
    let subject = OnServer::on(server.clone()).await;
    let store = subject.store();
    let term = taken(store).await;

    let crashing = async {
        for _ in 0..3 {
            let server = server.clone();
            let crashed = tokio::task::spawn_blocking(move || {
                server.crash();
                server.start();
            });
            crashed.await.unwrap();
        }
    };
    let mut crashes = std::pin::pin!(crashing);
    let mut written = 0;
    loop {
        let commit = store.commit(vec![append(term, written, ["word"])]);
        let (outcome, is_over) = tokio::join!(commit, async { futures_util::poll!(crashes.as_mut()).is_ready() });
        assert_eq!(outcome.unwrap(), [Ok(())]);
        written += 1;
        if is_over {
            break;
        }
    }

    assert_eq!(journal(store).await.len() as u64, written);
}

#[tokio::test]
async fn a_cancelled_wait_for_a_standby_is_no_success() {
    let Some(server) = TestServer::new() else { return };
    let subject = Arc::new(OnServer::on(Arc::new(server)).await);
    let term = taken(subject.store()).await;
    let admin = subject.server.admin().await;
    let standbys = async |names: &str| {
        let set = format!("alter system set synchronous_standby_names = '{names}'");
        admin.client.batch_execute("set synchronous_commit = local").await.unwrap();
        admin.client.batch_execute(&set).await.unwrap();
        admin.client.batch_execute("select pg_reload_conf()").await.unwrap();
    };
    standbys("absent").await;

    let writer = subject.clone();
    let commit = tokio::spawn(async move { writer.store().commit(vec![append(term, 0, ["word"])]).await });
    let mut waiting = subject.waiting_for_standby().await;
    while waiting.is_empty() {
        waiting = subject.waiting_for_standby().await;
    }
    admin.client.batch_execute(&format!("select pg_cancel_backend({})", waiting[0])).await.unwrap();
    // It was stored and is not safe, so a second write waits now.
    while subject.waiting_for_standby().await.iter().all(|pid| *pid == waiting[0]) {}
    assert!(!commit.is_finished());
    standbys("").await;

    assert_eq!(commit.await.unwrap().unwrap(), [Ok(())]);
    assert_eq!(journal(subject.store()).await, ["word"]);
}

#[tokio::test]
async fn commits_of_many_writers_are_grouped() {
    let Some(subject) = OnServer::new().await else { return };
    let store = subject.store();
    let term = taken(store).await;

    let commits = ["a", "b", "c", "d"].map(|name| store.commit(vec![writes(term, [put(name, name)])]));
    let outcomes = futures_util::future::join_all(commits).await;

    assert!(outcomes.into_iter().all(|outcome| outcome == Ok(vec![Ok(())])));
    for name in ["a", "b", "c", "d"] {
        assert_eq!(value(store, name).await.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn servers_that_start_together_make_the_tables_once() {
    let Some(server) = TestServer::shared() else { return };
    let url = server.empty().await;

    let openings = [0, 1, 2, 3].map(|_| {
        let url = url.clone();
        tokio::task::spawn_blocking(move || {
            let folder = tempfile::tempdir().unwrap();
            opened(&folder, &url).map(drop)
        })
    });

    for opening in openings {
        opening.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_unchanged() {
    let Some(mut subject) = OnServer::new().await else { return };
    subject.store = None;

    for (change, what) in [("insert into migration values (99)", "tables"), ("update store set format = 99", "records")] {
        subject.sql(change).await;
        let error = opened(&subject.folder, &subject.url).err().unwrap().to_string();

        assert!(error.contains(&format!("the {what} of the database")) && error.contains("start the version"), "{error}");
        subject.sql("delete from migration where version = 99").await;
    }
}

#[tokio::test]
async fn errors_have_nothing_of_the_url() {
    let Some(server) = TestServer::shared() else { return };
    let folder = tempfile::tempdir().unwrap();

    let error = opened(&folder, &server.url("nowhere")).err().unwrap();

    let text = format!("{error} {error:?}");
    assert!(text.contains("does not exist (3D000)") && !text.contains("hidden"), "{text}");
}

#[tokio::test]
async fn a_database_makes_its_own_backups() {
    let Some(mut subject) = OnServer::new().await else { return };
    let store = Arc::new(subject.store.take().unwrap());

    let error = StoreMaintenance::backup(store, Path::new("/tmp/any.backup")).await.unwrap_err();

    assert!(error.to_string().contains("pg_dump"), "{error}");
}
