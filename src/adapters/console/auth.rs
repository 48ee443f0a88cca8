//! Authentication: programs send the admin token or a token of their own, browsers a session cookie, and guests the cookies of their visits.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, StatusCode};
use parking_lot::{Mutex, RwLock};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::host::is_loopback;
use super::kept_sessions::{KeptSessions, hash};
use super::limits::{RateLimiter, client_key};
use super::problem::Problem;
use super::tokens::{Scope, Token, Tokens};
use crate::ports::backend::Detail;
use crate::ports::backend::guest_service::Visit;
use crate::ports::clock::Clock;
use crate::ports::rng::Rng;
use crate::settings::kept_token::KeptToken;
use crate::settings::server::{Server, is_unguessable};

/// The factor by which the shared limit of all unknown addresses exceeds the limit of one address. With the shared limit, guessing from many
/// addresses gains little.
const SHARED_FACTOR: f64 = 60.0;

/// The key under which the attempts of all unknown addresses are counted.
const UNKNOWN_ADDRESSES: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The number of remembered addresses that have presented the token.
const MAX_TRUSTED: usize = 1_000;

/// The length of a session id, in hexadecimal digits.
const SESSION_DIGITS: usize = 64;

/// The number of cookies with our name that are checked for a session. It exceeds the number that a browser stores for one site.
const MOST_COOKIES: usize = 256;

pub(super) struct Auth {
    /// `None` only on loopback, if no token is configured. Then every program on this machine is admitted.
    token: RwLock<Option<SecretString>>,
    /// The file for a token that is created at run time.
    kept_token: Option<KeptToken>,
    /// The tokens of programs.
    tokens: Option<Tokens>,
    /// Held while a token is created.
    making: tokio::sync::Mutex<()>,
    attempts: RateLimiter,
    /// The limit that all addresses share, except loopback and `trusted`.
    shared_attempts: RateLimiter,
    /// Addresses that have presented the token. Guessing from other addresses does not block them.
    trusted: Mutex<HashSet<IpAddr>>,
    sessions: Arc<Mutex<HashMap<Session, Instant>>>,
    kept_sessions: Option<KeptSessions>,
    /// Held while the sessions are written to disk.
    writing_sessions: Arc<Mutex<()>>,
    session_length: Duration,
    max_sessions: usize,
    is_secure: bool,
    rng: Arc<dyn Rng>,
    clock: Arc<dyn Clock>,
}

/// The session of a signed-in browser, as the hash of its cookie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session(String);

/// How a request was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// No token is configured.
    Open,
    /// The request has the admin token.
    Program,
    /// The request has a program's own token.
    Token(Token),
    /// The request has an open session.
    Browser(Session),
    /// The request has the cookies of visits. Guests may use few routes, and only in the rooms of their visits.
    Guest(Arc<[Visit]>),
    /// The request has no credentials, or a session that has ended.
    Anonymous,
}

impl Auth {
    pub(super) fn new(token: Option<SecretString>, settings: &Server, rng: Arc<dyn Rng>, clock: Arc<dyn Clock>) -> Self {
        let per_minute = f64::from(settings.sign_ins_per_minute);
        let kept_sessions = settings.kept_token.as_ref().map(KeptSessions::beside);
        let known = token.as_ref().zip(kept_sessions.as_ref()).map(|(token, kept)| kept.read(token.expose_secret()));
        let (unix, now) = (unix_secs(&*clock), Instant::now());
        let ends_at = |(session, end): (String, u64)| {
            let left = Duration::from_secs(end.saturating_sub(unix)).min(settings.session());
            (!left.is_zero()).then(|| (Session(session), now + left))
        };
        Self {
            sessions: Arc::new(Mutex::new(known.into_iter().flatten().filter_map(ends_at).collect())),
            kept_sessions,
            writing_sessions: Arc::default(),
            token: RwLock::new(token),
            tokens: settings.kept_token.as_ref().and_then(|kept| kept.path().parent()).map(Tokens::of),
            kept_token: settings.kept_token.clone(),
            making: tokio::sync::Mutex::default(),
            attempts: RateLimiter::new(per_minute / 60.0, per_minute),
            shared_attempts: RateLimiter::new(per_minute * SHARED_FACTOR / 60.0, per_minute * SHARED_FACTOR),
            trusted: Mutex::default(),
            session_length: settings.session(),
            max_sessions: settings.max_sessions,
            is_secure: settings.public_origin().is_some_and(|origin| origin.starts_with("https://")),
            rng,
            clock,
        }
    }

    /// Whether requests need a token or a session.
    pub(super) fn is_needed(&self) -> bool {
        self.token.read().is_some()
    }

    /// Creates an admin token if none exists, stores it in the data folder, and opens a session for this browser. Returns the file and the cookie
    /// to set, or `None` if a token exists.
    pub(super) async fn make_token(&self, address: IpAddr) -> Result<Option<(String, String)>, Problem> {
        let _held = self.making.lock().await;
        if self.is_needed() {
            return Ok(None);
        }
        let cannot = |problem: String| {
            let detail = format!("an admin token is needed, and cannot be kept: {problem}; set server.admin_token_file");
            Problem::new(StatusCode::CONFLICT, detail)
        };
        let kept = self.kept_token.clone().ok_or_else(|| cannot("there is no data folder".to_owned()))?;
        let token = SecretString::from(self.secret());
        let (file, written) = (kept.path().display().to_string(), token.clone());
        let written = tokio::task::spawn_blocking(move || kept.write(&written)).await;
        written.map_err(std::io::Error::other).flatten().map_err(|error| cannot(format!("{file}: {error}")))?;
        *self.token.write() = Some(token);
        let cookie = self.open_session(Instant::now());
        tracing::info!(file, "an admin token was made, because somebody is invited; the API and the page need it from now on");
        self.trust(address);
        Ok(Some((file, cookie)))
    }

    /// Authenticates a request by its headers. A wrong token counts as a failed attempt and is refused.
    pub(super) fn admit(&self, headers: &HeaderMap, address: IpAddr, now: Instant) -> Result<Admission, Problem> {
        if !self.is_needed() {
            return Ok(Admission::Open);
        }
        if headers.contains_key(AUTHORIZATION) {
            let Some(token) = bearer(headers) else {
                return Err(Problem::new(StatusCode::UNAUTHORIZED, "send the admin token as Authorization: Bearer …"));
            };
            let known = self.tokens.as_ref().and_then(|tokens| tokens.with_secret(token));
            return match known {
                Some(token) => Ok(Admission::Token(token)),
                None => self.try_token(token, address, now).map(|()| Admission::Program),
            };
        }
        Ok(self.session(headers, now).map_or(Admission::Anonymous, Admission::Browser))
    }

    /// The tokens of programs.
    pub(super) fn tokens(&self) -> Result<&Tokens, Problem> {
        let detail = "there is no data folder to keep tokens in";
        self.tokens.as_ref().ok_or_else(|| Problem::new(StatusCode::CONFLICT, detail))
    }

    /// Creates a token for a program.
    pub(super) fn make_program_token(&self, name: &str, scope: Scope) -> Result<SecretString, Problem> {
        if !self.is_needed() {
            let detail =
                "no admin token is set, so every program on this machine may do everything; set server.admin_token_file first";
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        Ok(self.tokens()?.make(name, scope, self.clock.now(), &*self.rng)?)
    }

    /// Whether a token is still valid.
    pub(super) fn has_token(&self, token: &Token) -> bool {
        self.tokens.as_ref().is_some_and(|tokens| tokens.has(token))
    }

    /// Opens a session if the token is right. Returns the cookie to set.
    pub(super) fn sign_in(&self, token: &str, address: IpAddr, now: Instant) -> Result<String, Problem> {
        self.try_token(token.trim(), address, now)?;
        Ok(self.open_session(now))
    }

    /// 256 random bits, in hexadecimal digits.
    pub(super) fn secret(&self) -> String {
        format!("{:032x}{:032x}", self.rng.id(), self.rng.id())
    }

    fn open_session(&self, now: Instant) -> String {
        let value = self.secret();
        let session = Session(hash(&value));
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, ends_at| *ends_at > now);
        if sessions.len() >= self.max_sessions {
            // All sessions have the same length, so the one that ends first is the oldest.
            let oldest = sessions.iter().min_by_key(|(_, ends_at)| **ends_at).map(|(session, _)| session.clone());
            oldest.and_then(|session| sessions.remove(&session));
        }
        let session_cookie = cookie("", &value, self.session_length, self.is_secure);
        sessions.insert(session, now + self.session_length);
        drop(sessions);
        self.keep_sessions();
        session_cookie
    }

    /// Writes the sessions to disk for the next start.
    fn keep_sessions(&self) {
        let (Some(kept), Some(token)) = (self.kept_sessions.clone(), self.token.read().clone()) else { return };
        let (sessions, clock) = (self.sessions.clone(), self.clock.clone());
        let writing = self.writing_sessions.clone();
        tokio::task::spawn_blocking(move || {
            // Of two concurrent writes, the later one contains all sessions. Requests do not wait for the disk.
            let _held = writing.lock();
            let (unix, now) = (unix_secs(&*clock), Instant::now());
            let in_secs = |(session, ends_at): (&Session, &Instant)| (session.0.clone(), unix + (*ends_at - now).as_secs());
            let all = sessions.lock().iter().map(in_secs).collect();
            if let Err(error) = kept.write(token.expose_secret(), all) {
                tracing::warn!(%error, file = %kept.path().display(), "sessions cannot be kept: after a restart, browsers have to sign in again");
            }
        });
    }

    /// The cookies of visits in these headers, including visits that have ended.
    pub(super) fn guest_cookies(&self, headers: &HeaderMap, is_secure: bool) -> Vec<String> {
        let prefix = format!("{}-guest-", cookie_name(is_secure));
        let values = cookies_in(headers).filter(|(key, _)| key.starts_with(&prefix)).map(|(_, value)| value.to_owned());
        values.filter(|value| value.len() == SESSION_DIGITS).take(MOST_COOKIES).collect()
    }

    /// The cookie of a visit. Each invitation has its own cookie, so that a browser can be a guest in several rooms.
    pub(super) fn guest_cookie(&self, invitation: &str, value: &SecretString, max_age: Duration, is_secure: bool) -> String {
        cookie(&format!("-guest-{invitation}"), value.expose_secret(), max_age, is_secure)
    }

    /// Ends the sessions in these headers. Returns a cookie that removes the session cookie.
    pub(super) fn sign_out(&self, headers: &HeaderMap) -> String {
        let mut has_ended = false;
        for session in self.sessions_in(headers) {
            has_ended |= self.sessions.lock().remove(&session).is_some();
        }
        if has_ended {
            self.keep_sessions();
        }
        cookie("", "", Duration::ZERO, self.is_secure)
    }

    /// Whether a session is still open.
    pub(super) fn is_signed_in(&self, session: &Session, now: Instant) -> bool {
        self.sessions.lock().get(session).is_some_and(|ends_at| *ends_at > now)
    }

    fn try_token(&self, presented: &str, address: IpAddr, now: Instant) -> Result<(), Problem> {
        if !self.is_needed() {
            return Ok(());
        }
        let is_right = self.is_token(presented);
        if is_right && self.has_unguessable_token() {
            self.trust(address);
            return Ok(());
        }
        // Over the limit, a right token that could be guessed is refused like a wrong one. Otherwise the limit would not slow down guessing.
        let is_right = || is_right;
        // Loopback and trusted addresses do not share a limit with others, so that guessing elsewhere does not block the operator.
        let outcome = if is_loopback(address) || self.is_trusted(address) {
            self.attempts.take_unless(address, now, is_right)
        } else {
            let mut shared_error = None;
            let outcome = self.attempts.take_unless(address, now, || {
                let shared = self.shared_attempts.take_unless(UNKNOWN_ADDRESSES, now, is_right);
                shared_error = shared.err();
                shared == Ok(true)
            });
            shared_error.map_or(outcome, Err)
        };
        match outcome {
            Ok(true) => {
                self.trust(address);
                Ok(())
            }
            Ok(false) => Err(Problem::new(StatusCode::UNAUTHORIZED, Detail::key("refusals.not_the_token"))),
            Err(wait) => {
                let detail = Detail::key("refusals.too_many_sign_ins");
                Err(Problem::too_many(detail, wait))
            }
        }
    }

    /// Compares in constant time, so that the duration reveals only the token's length.
    fn is_token(&self, presented: &str) -> bool {
        self.token.read().as_ref().is_some_and(|token| token.expose_secret().as_bytes().ct_eq(presented.as_bytes()).into())
    }

    fn has_unguessable_token(&self) -> bool {
        self.token.read().as_ref().is_some_and(|token| is_unguessable(token.expose_secret()))
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.lock().contains(&client_key(address))
    }

    fn trust(&self, address: IpAddr) {
        let mut trusted = self.trusted.lock();
        if trusted.len() < MAX_TRUSTED {
            trusted.insert(client_key(address));
        }
    }

    /// The open session in these headers. Other servers on the same host name can set cookies with our name, so there may be several.
    fn session(&self, headers: &HeaderMap, now: Instant) -> Option<Session> {
        self.sessions_in(headers).find(|session| self.is_signed_in(session, now))
    }

    /// The sessions, as hashes, that the cookies with our name may stand for: at most `MOST_COOKIES`.
    fn sessions_in(&self, headers: &HeaderMap) -> impl Iterator<Item = Session> {
        let name = cookie_name(self.is_secure);
        cookies_in(headers)
            .filter(move |(key, value)| *key == name && value.len() == SESSION_DIGITS)
            .map(|(_, value)| Session(hash(value)))
            .take(MOST_COOKIES)
    }
}

/// Browsers accept the prefix `__Host-` only on cookies that are Secure and valid for one host, so no other subdomain can set such a cookie.
fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-tertulia" } else { "tertulia" }
}

/// The value of `Set-Cookie` for our cookie name with this suffix.
fn cookie(ending: &str, value: &str, max_age: Duration, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    let name = cookie_name(is_secure);
    format!("{name}{ending}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", max_age.as_secs())
}

fn unix_secs(clock: &dyn Clock) -> u64 {
    clock.now().as_micros() / 1_000_000
}

/// The names and values of cookies.
fn cookies_in(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// The bearer token in these headers, if the scheme is right.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().unwrap_or_default();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::http::HeaderValue;

    use super::*;
    use crate::adapters::system::SystemClock;
    use crate::samples::Draws;
    use crate::settings::samples::server as defaults;

    const ANA: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn auth(settings: &Server) -> Auth {
        Auth::new(Some("open sesame".into()), settings, Arc::<Draws>::default(), Arc::new(SystemClock))
    }

    fn with_cookie(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&format!("other=1; {pair}")).unwrap())])
    }

    #[test]
    fn a_session_ends_after_its_configured_length() {
        let auth = auth(&Server { session_secs: 60.0, ..defaults() });
        let now = Instant::now();
        let headers = with_cookie(&auth.sign_in("open sesame", ANA, now).unwrap());

        let admissions = [0, 59, 60].map(|secs| auth.admit(&headers, ANA, now + Duration::from_secs(secs)).unwrap());

        assert!(matches!(admissions, [Admission::Browser(_), Admission::Browser(_), Admission::Anonymous]));
    }

    #[test]
    fn foreign_cookies_with_our_name_do_not_end_a_session() {
        let auth = auth(&defaults());
        let now = Instant::now();
        let cookie = auth.sign_in("open sesame", ANA, now).unwrap();
        let ours = cookie.split(';').next().unwrap();
        let (short, long) = ("tertulia=x".to_owned(), format!("tertulia={}", "0".repeat(SESSION_DIGITS)));
        let headers_with = |others: &[&String]| {
            let others = others.iter().flat_map(|other| [other.as_str(), "; "]).collect::<String>();
            HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&format!("{others}{ours}; {short}")).unwrap())])
        };
        let is_signed_in = |headers: &HeaderMap| matches!(auth.admit(headers, ANA, now), Ok(Admission::Browser(_)));
        let mut separate = with_cookie("tertulia=x");
        separate.append(COOKIE, HeaderValue::from_str(ours).unwrap());

        assert!(
            is_signed_in(&headers_with(&[&short]))
                && is_signed_in(&headers_with(&[&short, &long, &short]))
                && is_signed_in(&separate)
        );
        assert!(is_signed_in(&headers_with(&[&long; MOST_COOKIES - 1])));
        assert!(!is_signed_in(&headers_with(&[&long; MOST_COOKIES])), "the number of checked cookies is limited");
        auth.sign_out(&headers_with(&[&short]));
        assert!(!is_signed_in(&headers_with(&[])));
    }

    #[test]
    fn a_session_over_the_limit_ends_the_oldest() {
        let auth = auth(&Server { max_sessions: 2, ..defaults() });
        let now = Instant::now();
        let cookies = [0, 1, 2].map(|secs| auth.sign_in("open sesame", ANA, now + Duration::from_secs(secs)).unwrap());

        let admitted = cookies
            .map(|cookie| auth.admit(&with_cookie(&cookie), ANA, now + Duration::from_secs(3)).unwrap() != Admission::Anonymous);

        assert_eq!(admitted, [false, true, true]);
    }

    #[test]
    fn wrong_tokens_use_up_the_attempts_and_right_ones_do_not() {
        let auth = auth(&Server { sign_ins_per_minute: 2, ..defaults() });
        let now = Instant::now();

        let right = (0..10).all(|_| auth.sign_in("open sesame", ANA, now).is_ok());
        let wrong = [0; 3].map(|_| auth.sign_in("open barley", ANA, now).unwrap_err().status().as_u16());

        assert!(right);
        assert_eq!(wrong, [401, 401, 429]);
        assert_eq!(auth.sign_in("open sesame", ANA, now).unwrap_err().status().as_u16(), 429);
    }

    #[test]
    fn guessing_from_many_loopback_addresses_runs_out_of_attempts_like_guessing_from_one() {
        let auth = auth(&Server { sign_ins_per_minute: 2, ..defaults() });
        let now = Instant::now();
        let guess = |last: u8| auth.sign_in("open barley", [127, 0, 1, last].into(), now).unwrap_err().status().as_u16();

        let guesses: Vec<_> = (1..=5).map(guess).collect();

        assert_eq!(guesses, [401, 401, 429, 429, 429]);
    }

    #[test]
    fn guessing_from_many_addresses_is_limited_and_does_not_block_trusted_addresses() {
        let auth = auth(&Server { sign_ins_per_minute: 1, ..defaults() });
        let now = Instant::now();
        let from = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + n));
        let guess = |n: u32| auth.sign_in("open barley", from(n), now).unwrap_err().status().as_u16();
        assert!(auth.sign_in("open sesame", from(200), now).is_ok());

        let guesses: Vec<_> = (0..80).map(guess).collect();

        assert_eq!(guesses.iter().filter(|status| **status == 401).count(), 60);
        assert!(guesses[60..].iter().all(|status| *status == 429));
        assert_eq!(auth.sign_in("open sesame", from(100), now).unwrap_err().status().as_u16(), 429);
        assert!(auth.sign_in("open sesame", from(200), now).is_ok());
        // Loopback is not blocked.
        assert!(auth.sign_in("open sesame", ANA, now).is_ok());
        assert!(auth.sign_in("open sesame", from(100), now + Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn an_unguessable_token_is_accepted_in_spite_of_any_number_of_guesses() {
        const LONG: &str = "9f86d081884c7d659a2feaa0c55ad015";
        let settings = Server { sign_ins_per_minute: 1, ..defaults() };
        let auth = Auth::new(Some(LONG.into()), &settings, Arc::<Draws>::default(), Arc::new(SystemClock));
        let now = Instant::now();
        let from = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + n));
        let guess = |address| auth.sign_in(&LONG[1..], address, now).unwrap_err().status().as_u16();

        let guesses: Vec<_> = (0..80).chain([1, 2]).map(|n| guess(from(n))).chain([guess(ANA), guess(ANA)]).collect();

        assert_eq!(guesses[60..], [[429; 22].as_slice(), &[401, 429]].concat());
        assert!([ANA, from(1), from(100)].into_iter().all(|address| auth.sign_in(LONG, address, now).is_ok()));
    }

    #[test]
    fn a_cookie_is_secure_behind_https_and_never_readable_by_scripts() {
        let plain = auth(&defaults()).sign_in("open sesame", ANA, Instant::now()).unwrap();
        let secure = auth(&Server { public_url: Some("https://a.example".into()), ..defaults() });
        let secure = secure.sign_in("open sesame", ANA, Instant::now()).unwrap();

        assert!(plain.starts_with("tertulia=") && plain.ends_with("; HttpOnly; SameSite=Strict"));
        assert!(secure.starts_with("__Host-tertulia=") && secure.ends_with("; HttpOnly; SameSite=Strict; Secure"));
    }
}
