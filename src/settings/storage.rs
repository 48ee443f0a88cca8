//! Section `storage`: the location of the store, retention, backups and compaction.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode};

use super::duration::interval;
use super::secret::{bare_secret, first_line, secret};
use super::{Problem, within};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::domain::named::named;

const HOUR_MICROS: u64 = 60 * 60 * 1_000_000;

/// The longest retention period in days: a hundred years.
pub const MOST_DAYS: u32 = 36_500;

/// The shortest interval between backups.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(MOST_DAYS as u64 * 24 * 60 * 60);

named! {
    /// What holds the store.
    #[derive(clap::ValueEnum)]
    pub enum Engine {
        /// The data folder (storage.path).
        Sled = "sled",
        /// The database (storage.url, storage.url_file).
        Postgres = "postgres",
    }
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// The storage engine.
    pub engine: Engine,
    /// The URL of the PostgreSQL database, only from the environment (`TERTULIA__STORAGE__URL`). See also `url_file`.
    pub url: Option<SecretString>,
    /// A file whose first line is the URL.
    pub url_file: Option<PathBuf>,
    /// The data folder. A relative path is relative to the folder in which the server is started.
    pub path: PathBuf,
    /// Days after which messages and decisions are deleted (1 to 36,500). `None`: never.
    pub retention_days: Option<u32>,
    /// The retention period of single guilds, by id (0 to 36,500 days). 0: messages are never deleted.
    pub guild_retention_days: BTreeMap<GuildId, u32>,
    /// The most bytes of all files that are uploaded to a room, in MiB (0 to 1,000,000). 0: nothing can be uploaded.
    pub room_files_mb: u32,
    /// The interval between automatic backups (1 s to 36,500 days). `None`: no automatic backups.
    #[serde(deserialize_with = "interval")]
    pub backup_every: Option<Duration>,
    /// The number of automatic backups that are kept (1 to 1,000).
    pub backups_kept: usize,
    /// Days after which the store is compacted to remove deleted text from its file (0 to 36,500). 0: only by the operator.
    pub compact_after_days: u32,
    /// The hour of the day, 0 to 23 in UTC, in which a running server pauses to compact.
    pub compact_hour: u32,
}

impl Storage {
    /// The retention period of a guild. `None`: its messages are never deleted.
    pub fn retention_of(&self, guild: &GuildId) -> Option<Duration> {
        let days = self.guild_retention_days.get(guild).copied().or(self.retention_days).filter(|days| *days > 0)?;
        Some(Duration::from_secs(u64::from(days) * 24 * 60 * 60))
    }

    /// Whether no guild has a retention period.
    pub fn keeps_everything(&self) -> bool {
        self.retention_days.is_none() && self.guild_retention_days.values().all(|days| *days == 0)
    }

    /// Whether text erased at `erased` has been in the store's file for longer than allowed. If the clock was ahead at that time,
    /// the duration is unknown, and compaction is due.
    pub fn is_compaction_due(&self, erased: Moment, now: Moment) -> bool {
        let was_ahead = day(erased) > day(now) + 1;
        self.compacts() && (was_ahead || day(now) >= day(erased).saturating_add(self.compact_after_days.into()))
    }

    /// Whether this is the hour in which a running server compacts.
    pub fn is_compact_hour(&self, now: Moment) -> bool {
        now.as_micros() / HOUR_MICROS % 24 == u64::from(self.compact_hour)
    }

    /// The latest time at which text that is erased now is removed from the store's file. `None`: the server does not compact it.
    pub fn compacted_by(&self, now: Moment) -> Option<Moment> {
        let hours = (day(now) + u64::from(self.compact_after_days)) * 24 + u64::from(self.compact_hour) + 1;
        self.compacts().then(|| Moment::from_micros(hours.saturating_mul(HOUR_MICROS)))
    }

    /// Whether the server compacts the store automatically. A database compacts itself.
    pub fn compacts(&self) -> bool {
        self.engine == Engine::Sled && self.compact_after_days > 0
    }

    /// The URL of the database, from the settings or its file.
    ///
    /// # Errors
    /// Returns an error if no URL is set, if the file cannot be read, or if the text is not such a URL. The message never
    /// contains it.
    pub fn url(&self) -> Result<SecretString, Problem> {
        let Some((key, url)) = secret(("url", self.url.as_ref()), ("url_file", self.url_file.as_deref()))? else {
            let message =
                "is not set; set url_file to a file whose first line is the URL of the database, or TERTULIA__STORAGE__URL";
            return Err(Problem::new("url", message));
        };
        let url = bare_secret(key, first_line(&url))?;
        check_url(key, url)?;
        Ok(url.into())
    }

    pub fn check(&self) -> Result<(), Problem> {
        if self.path.as_os_str().is_empty() {
            return Err(Problem::new("path", "is empty, must name a folder, for example data"));
        }
        if self.url.is_some() && self.url_file.is_some() {
            return Err(Problem::new("url_file", "is set together with url; set only one of them"));
        }
        if let Some(url) = &self.url {
            check_url("url", bare_secret("url", url.expose_secret())?)?;
        }
        if self.engine == Engine::Postgres && self.url.is_none() && self.url_file.is_none() {
            let message =
                "is not set, but storage.engine is \"postgres\"; set url_file (or TERTULIA__STORAGE__URL), or engine to \"sled\"";
            return Err(Problem::new("url", message));
        }
        if let Some(days) = self.retention_days {
            within("retention_days", days, 1..=MOST_DAYS)?;
        }
        for (guild, days) in &self.guild_retention_days {
            within(&format!("guild_retention_days.{guild}"), *days, 0..=MOST_DAYS)?;
        }
        if self.backup_every.is_some_and(|every| !(LEAST_INTERVAL..=LONGEST_INTERVAL).contains(&every)) {
            return Err(Problem::new("backup_every", "is out of range, must be 1s to 36500d, or never"));
        }
        within("room_files_mb", self.room_files_mb, 0..=1_000_000)?;
        within("backups_kept", self.backups_kept, 1..=1000)?;
        within("compact_after_days", self.compact_after_days, 0..=MOST_DAYS)?;
        within("compact_hour", self.compact_hour, 0..=23)
    }
}

fn check_url(key: &str, url: &str) -> Result<(), Problem> {
    database(url).map(drop).map_err(|message| Problem::new(key, message))
}

/// The connection parameters of each host in the URL of a database, in the URL's order.
///
/// # Errors
/// Returns the problem of the URL and its remedy. The message contains neither user, password nor host.
pub fn database(url: &str) -> Result<Vec<Config>, String> {
    const NO_URL: &str = "is not the URL of a PostgreSQL database, such as postgresql://tertulia:PASSWORD@db.example.org:5432/tertulia; \
                          special characters in the password must be percent-encoded";
    const TWO_ATS: &str =
        "has more than one @; one in the password is written %40, and other special characters are percent-encoded, too";
    const FILES: &str = "names certificates (sslrootcert, sslcert or sslkey), which is not supported; leave them out: the server's certificate is \
                         always checked, with the authorities of this machine or of the PEM file in SSL_CERT_FILE";
    const BINDING: &str = "has channel_binding=require, which needs TLS: add sslmode=require, or leave it out";
    const HOSTS: &str =
        "does not name each host once, before the path, such as postgresql://tertulia:PASSWORD@db1,db2:5433/tertulia";
    if !["postgresql://", "postgres://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(NO_URL.into());
    }
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    if place.matches('@').count() > 1 {
        return Err(TWO_ATS.into());
    }
    if ["sslrootcert=", "sslcert=", "sslkey="].iter().any(|option| options.contains(option)) {
        return Err(FILES.into());
    }
    // With TLS, the certificate and the host name are always checked.
    let options = options.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let parse = |place: &str| if options.is_empty() { place.parse::<Config>() } else { format!("{place}?{options}").parse() };
    let refused = |error: tokio_postgres::Error| {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        let is_of_options =
            !options.contains('@') && ["unknown option", "invalid value for option"].iter().any(|of| cause.starts_with(of));
        if is_of_options { format!("has an {cause}; correct it, or leave it out") } else { NO_URL.into() }
    };
    let config = parse(place).map_err(refused)?;
    let hosts_at = place.find('@').map_or_else(|| place.find("://").map_or(0, |at| at + 3), |at| at + 1);
    let (user, hosts) = place.split_at(hosts_at);
    let (hosts, name) = hosts.split_at(hosts.find('/').unwrap_or(hosts.len()));
    let each: Vec<Config> =
        hosts.split(',').map(|host| parse(&format!("{user}{host}{name}")).map_err(refused)).collect::<Result<_, _>>()?;
    match () {
        () if config.get_hosts().is_empty() => Err(NO_URL.into()),
        () if config.get_channel_binding() == ChannelBinding::Require && config.get_ssl_mode() != SslMode::Require => {
            Err(BINDING.into())
        }
        () if each.iter().any(|host| host.get_hosts().len() != 1 || host.get_hostaddrs().len() > 1) => Err(HOSTS.into()),
        () => Ok(each),
    }
}

fn day(moment: Moment) -> u64 {
    moment.as_micros() / HOUR_MICROS / 24
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    fn storage(days: u32, hour: u32) -> Storage {
        Storage {
            engine: Engine::Sled,
            url: None,
            url_file: None,
            path: "data".into(),
            retention_days: None,
            guild_retention_days: BTreeMap::new(),
            room_files_mb: 1_024,
            backup_every: None,
            backups_kept: 3,
            compact_after_days: days,
            compact_hour: hour,
        }
    }

    fn hours(hours: u64) -> Moment {
        Moment::from_micros(hours * HOUR_MICROS)
    }

    #[test]
    fn erased_words_are_removed_in_the_set_hour_after_the_set_number_of_days() {
        let storage = storage(7, 4);
        let erased = hours(20 * 24 + 23);

        let by = storage.compacted_by(erased);

        assert_eq!(by, Some(hours(27 * 24 + 5)));
        assert!(!storage.is_compaction_due(erased, hours(27 * 24 - 1)));
        assert!(storage.is_compaction_due(erased, hours(27 * 24 + 4)));
        assert!(storage.is_compaction_due(erased, hours(15 * 24)), "the clock was ahead");
        let is_the_hour = [3, 4, 5].map(|hour| storage.is_compact_hour(hours(27 * 24 + hour)));
        assert_eq!(is_the_hour, [false, true, false]);
    }

    #[test]
    fn with_0_days_the_server_never_compacts() {
        let storage = storage(0, 4);

        assert_eq!(storage.compacted_by(hours(1)), None);
        assert!(!storage.is_compaction_due(Moment::ZERO, hours(1_000_000)));
    }

    #[test]
    fn the_interval_of_backups_is_a_duration_or_never() {
        let read = |text: &str| {
            let path = PathBuf::from("data");
            let value = serde_json::json!({ "engine": "sled", "path": path, "guild_retention_days": {}, "backup_every": text, "backups_kept": 3,
                "compact_after_days": 7, "compact_hour": 4, "room_files_mb": 1_024 });
            serde_json::from_value::<Storage>(value)
        };

        assert_eq!(read("36h").unwrap().backup_every, Some(Duration::from_secs(36 * 60 * 60)));
        assert_eq!(read("never").unwrap().backup_every, None);
        let error = read("often").unwrap_err().to_string();
        assert!(error.contains("\"often\" is no duration") && error.contains("or never"), "{error}");
        let error = read("0s").unwrap().check().unwrap_err().to_string();
        assert!(error.contains("backup_every") && error.contains("1s to 36500d"), "{error}");
    }

    #[test]
    fn a_database_compacts_itself() {
        let storage = Storage { engine: Engine::Postgres, ..storage(7, 4) };

        assert!(!storage.compacts() && storage.compacted_by(hours(1)).is_none());
    }

    #[test]
    fn postgres_needs_one_url_of_a_database() {
        let postgres = || Storage { engine: Engine::Postgres, ..storage(7, 4) };
        let with = |url: &str| Storage { url: Some(url.into()), ..postgres() };

        assert!(with("postgresql://me:hidden@localhost/tertulia").check().is_ok());
        assert!(with("\"postgres://me:hidden@a,b:5433/tertulia?sslmode=require\"").check().is_ok());
        let problem = postgres().check().unwrap_err();
        assert!(problem.key == "url" && problem.message.contains("TERTULIA__STORAGE__URL"), "{problem}");
        let both = Storage { url_file: Some("url".into()), ..with("postgresql://me@localhost/tertulia") };
        assert_eq!(both.check().unwrap_err().key, "url_file");
        for url in [
            "",
            "hidden",
            "mysql://me:hidden@localhost/t",
            "postgresql://",
            "postgresql://me:hidden@localhost/t?zzz=1",
            "PASSWORD=hidden",
        ] {
            let problem = with(url).check().unwrap_err();

            assert!(problem.key == "url" && !problem.message.contains("hidden"), "{url}: {problem}");
        }
    }

    #[test]
    fn urls_of_hosted_databases_are_taken_or_say_what_to_leave_out() {
        let with = |options: &str| database(&format!("postgresql://me:hidden@db.example.org/t?{options}"));

        for mode in ["require", "verify-ca", "verify-full"] {
            assert_eq!(with(&format!("sslmode={mode}&channel_binding=require")).unwrap()[0].get_ssl_mode(), SslMode::Require);
        }
        assert!(with("sslmode=verify-full&sslrootcert=ca.pem").unwrap_err().contains("SSL_CERT_FILE"));
        for (options, named) in [
            ("channel_binding=require", "add sslmode=require"),
            ("schema=public", "unknown option `schema`"),
            ("sslmode=allow", "invalid value for option `sslmode`"),
        ] {
            let message = with(options).unwrap_err();
            assert!(message.contains(named) && message.contains("leave it out"), "{message}");
        }
        let two = database("postgresql://me:hid@den@db.example.org/t").unwrap_err();
        assert!(two.contains("%40") && !two.contains("den"), "{two}");
    }

    #[test]
    fn each_host_of_a_url_has_its_port_and_all_else() {
        let hosts = |url: &str| {
            let all = database(url).unwrap().into_iter().map(|host| (host.get_hosts().to_vec(), host.get_ports().to_vec()));
            all.collect::<Vec<_>>()
        };
        let tcp = |name: &str| vec![Host::Tcp(name.into())];

        let three = "postgresql://me:a%2Cb%2F@db1,db2:5433,[::1]:5434/t?connect_timeout=3";
        assert_eq!(hosts(three), [(tcp("db1"), vec![5432]), (tcp("db2"), vec![5433]), (tcp("::1"), vec![5434])]);
        for host in database(three).unwrap() {
            assert_eq!((host.get_user(), host.get_password(), host.get_dbname()), (Some("me"), Some(&b"a,b/"[..]), Some("t")));
        }
        assert_eq!(hosts("postgres://db1,db2").len(), 2);
        assert_eq!(hosts("postgres://%2Frun%2Fpostgresql/t"), [(vec![Host::Unix("/run/postgresql".into())], vec![5432])]);
        for url in ["db1,db2/t?hostaddr=10.0.0.1,10.0.0.2", "/t?host=db1&host=db2", "db1,/t", "db1/t?host=db2"] {
            assert!(database(&format!("postgres://{url}")).unwrap_err().contains("each host once"), "{url}");
        }
    }

    #[test]
    fn the_url_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "postgresql://me:hidden@localhost/tertulia\nmore\n").unwrap();
        let storage = Storage { url_file: Some(file.path().into()), ..storage(7, 4) };

        assert_eq!(storage.url().unwrap().expose_secret(), "postgresql://me:hidden@localhost/tertulia");
        assert!(!format!("{storage:?}").contains("hidden"));
        std::fs::write(file.path(), "hidden\n").unwrap();
        let problem = storage.url().unwrap_err();
        assert!(problem.key == "url_file" && !problem.message.contains("hidden"), "{problem}");
    }

    #[test]
    fn an_hour_above_23_is_rejected() {
        let error = storage(7, 24).check().unwrap_err().to_string();

        assert!(error.contains("compact_hour") && error.contains("23"), "{error}");
    }
}
