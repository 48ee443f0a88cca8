//! Decides who is let in: programs by the admin token, browsers by a session that the token opened.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::host::is_loopback;
use super::limits::{Allowance, party};
use super::problem::Problem;
use crate::ports::rng::Rng;
use crate::settings::server::{Server, is_unguessable};

/// All strangers together may try this many times what one address may: who has many addresses gets no further with them.
const CROWD: f64 = 60.0;

/// In whose name the crowd's attempts are counted.
const EVERYBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// At most this many addresses are remembered for having shown the token.
const MAX_TRUSTED: usize = 1_000;

/// So many digits are a session.
const SESSION_DIGITS: usize = 64;

/// So many cookies of our name that could be a session are looked at: more than a browser keeps for a site.
const MOST_COOKIES: usize = 256;

/// Who may come in.
pub(super) struct Auth {
    /// None on loopback, where none is configured: everybody on this machine may come in.
    token: Option<SecretString>,
    attempts: Allowance,
    /// What addresses share that have never shown the token.
    crowd: Allowance,
    /// Addresses that have: a crowd that guesses does not keep them out.
    trusted: Mutex<HashSet<IpAddr>>,
    sessions: Mutex<HashMap<Session, Instant>>,
    session_lasts: Duration,
    max_sessions: usize,
    is_secure: bool,
    rng: Arc<dyn Rng>,
}

/// A browser that is signed in: what its cookie holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session(String);

/// As whom a request is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// No token is needed here.
    Open,
    /// It showed the token.
    Program,
    /// It has a session.
    Browser(Session),
    /// It showed nothing.
    Stranger,
}

impl Auth {
    pub(super) fn new(token: Option<SecretString>, settings: &Server, rng: Arc<dyn Rng>) -> Self {
        let a_minute = f64::from(settings.sign_ins_per_minute);
        Self {
            token,
            attempts: Allowance::new(a_minute / 60.0, a_minute),
            crowd: Allowance::new(a_minute * CROWD / 60.0, a_minute * CROWD),
            trusted: Mutex::default(),
            sessions: Mutex::default(),
            session_lasts: settings.session(),
            max_sessions: settings.max_sessions,
            is_secure: settings.public_origin().is_some_and(|origin| origin.starts_with("https://")),
            rng,
        }
    }

    /// Whether anything has to be shown.
    pub(super) fn is_needed(&self) -> bool {
        self.token.is_some()
    }

    /// As whom these headers are let in. A wrong token is refused outright, and counted.
    pub(super) fn admit(&self, headers: &HeaderMap, address: IpAddr, now: Instant) -> Result<Admission, Problem> {
        if self.token.is_none() {
            return Ok(Admission::Open);
        }
        if headers.contains_key(AUTHORIZATION) {
            let Some(token) = bearer(headers) else {
                return Err(Problem::new(StatusCode::UNAUTHORIZED, "show the admin token as Authorization: Bearer …"));
            };
            return self.try_token(token, address, now).map(|()| Admission::Program);
        }
        Ok(self.session(headers, now).map_or(Admission::Stranger, Admission::Browser))
    }

    /// Opens a session for who knows the token; returns the cookie to set.
    pub(super) fn sign_in(&self, token: &str, address: IpAddr, now: Instant) -> Result<String, Problem> {
        self.try_token(token.trim(), address, now)?;
        let session = Session(format!("{:032x}{:032x}", self.rng.id(), self.rng.id()));
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, ends_at| *ends_at > now);
        if sessions.len() >= self.max_sessions {
            // All last equally long, so the one that ends first is the oldest.
            let oldest = sessions.iter().min_by_key(|(_, ends_at)| **ends_at).map(|(session, _)| session.clone());
            oldest.and_then(|session| sessions.remove(&session));
        }
        let cookie = self.written(&session.0, self.session_lasts);
        sessions.insert(session, now + self.session_lasts);
        Ok(cookie)
    }

    /// Ends the sessions of these headers, if they have any; returns the cookie that takes it away.
    pub(super) fn sign_out(&self, headers: &HeaderMap) -> String {
        for session in self.shown(headers) {
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        }
        self.written("", Duration::ZERO)
    }

    /// Whether a session is still open.
    pub(super) fn is_signed_in(&self, session: &Session, now: Instant) -> bool {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(session).is_some_and(|ends_at| *ends_at > now)
    }

    fn try_token(&self, shown: &str, address: IpAddr, now: Instant) -> Result<(), Problem> {
        if !self.is_needed() {
            return Ok(());
        }
        let is_right = self.is_token(shown);
        if is_right && self.has_unguessable_token() {
            self.trust(address);
            return Ok(());
        }
        // Once too many were wrong, a right one that could be guessed waits like the others, or guessing could go on.
        let is_right = || is_right;
        // Whoever is on this machine is of no crowd, whose guessing must not keep the operator out: its own attempts are counted alone.
        let tried = if is_loopback(address) || self.is_trusted(address) {
            self.attempts.take_unless(address, now, is_right)
        } else {
            let mut crowded = None;
            let tried = self.attempts.take_unless(address, now, || {
                let tried = self.crowd.take_unless(EVERYBODY, now, is_right);
                crowded = tried.err();
                tried == Ok(true)
            });
            crowded.map_or(tried, Err)
        };
        match tried {
            Ok(true) => {
                self.trust(address);
                Ok(())
            }
            Ok(false) => Err(Problem::new(StatusCode::UNAUTHORIZED, "this is not the admin token")),
            Err(wait) => {
                let detail = "too many attempts with a wrong token; wait and try again, or raise server.sign_ins_per_minute";
                Err(Problem::too_many(detail, wait))
            }
        }
    }

    /// How long that takes tells nothing but the token's length.
    fn is_token(&self, shown: &str) -> bool {
        self.token.as_ref().is_some_and(|token| token.expose_secret().as_bytes().ct_eq(shown.as_bytes()).into())
    }

    fn has_unguessable_token(&self) -> bool {
        self.token.as_ref().is_some_and(|token| is_unguessable(token.expose_secret()))
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.lock().unwrap_or_else(PoisonError::into_inner).contains(&party(address))
    }

    fn trust(&self, address: IpAddr) {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        if trusted.len() < MAX_TRUSTED {
            trusted.insert(party(address));
        }
    }

    /// Browsers accept the prefix only on what is Secure and holds for the whole host, so that no neighbour can set it.
    fn cookie_name(&self) -> &'static str {
        if self.is_secure { "__Host-tertulia" } else { "tertulia" }
    }

    /// The session of these headers that is open. Whoever shares our name with us can set cookies of that name before ours.
    fn session(&self, headers: &HeaderMap, now: Instant) -> Option<Session> {
        self.shown(headers).find(|session| self.is_signed_in(session, now))
    }

    /// What these headers show in cookies of that name.
    fn shown(&self, headers: &HeaderMap) -> impl Iterator<Item = Session> {
        let name = self.cookie_name();
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(move |(key, value)| *key == name && value.len() == SESSION_DIGITS)
            .map(|(_, value)| Session(value.to_owned()))
            .take(MOST_COOKIES)
    }

    fn written(&self, value: &str, lasts: Duration) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", self.cookie_name(), lasts.as_secs())
    }
}

/// The token that a program shows, if it shows one as it is meant.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(AUTHORIZATION)?.to_str().unwrap_or_default();
    let (scheme, token) = shown.split_once(' ').unwrap_or((shown, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU64, Ordering};

    use axum::http::HeaderValue;

    use super::*;
    use crate::settings::server::tests::defaults;

    const ANA: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    struct Counting(AtomicU64);

    impl Rng for Counting {
        fn jitter(&self) -> i8 {
            0
        }

        fn fraction(&self) -> f64 {
            0.0
        }

        fn id(&self) -> u128 {
            self.0.fetch_add(1, Ordering::Relaxed).into()
        }
    }

    fn auth(settings: &Server) -> Auth {
        Auth::new(Some("open sesame".into()), settings, Arc::new(Counting(AtomicU64::new(1))))
    }

    fn with_cookie(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&format!("other=1; {pair}")).unwrap())])
    }

    #[test]
    fn a_session_lasts_until_its_end_and_no_longer() {
        let auth = auth(&Server { session_secs: 60.0, ..defaults() });
        let now = Instant::now();
        let headers = with_cookie(&auth.sign_in("open sesame", ANA, now).unwrap());

        let admissions = [0, 59, 60].map(|secs| auth.admit(&headers, ANA, now + Duration::from_secs(secs)).unwrap());

        assert!(matches!(admissions, [Admission::Browser(_), Admission::Browser(_), Admission::Stranger]));
    }

    #[test]
    fn cookies_of_the_same_name_that_somebody_else_set_sign_nobody_out() {
        let auth = auth(&defaults());
        let now = Instant::now();
        let cookie = auth.sign_in("open sesame", ANA, now).unwrap();
        let ours = cookie.split(';').next().unwrap();
        let (short, long) = ("tertulia=x".to_owned(), format!("tertulia={}", "0".repeat(SESSION_DIGITS)));
        let shown = |others: &[&String]| {
            let others = others.iter().flat_map(|other| [other.as_str(), "; "]).collect::<String>();
            HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&format!("{others}{ours}; {short}")).unwrap())])
        };
        let is_in = |headers: &HeaderMap| matches!(auth.admit(headers, ANA, now), Ok(Admission::Browser(_)));
        let mut apart = with_cookie("tertulia=x");
        apart.append(COOKIE, HeaderValue::from_str(ours).unwrap());

        assert!(is_in(&shown(&[&short])) && is_in(&shown(&[&short, &long, &short])) && is_in(&apart));
        assert!(is_in(&shown(&[&long; MOST_COOKIES - 1])));
        assert!(!is_in(&shown(&[&long; MOST_COOKIES])), "they are not looked at without end");
        auth.sign_out(&shown(&[&short]));
        assert!(!is_in(&shown(&[])));
    }

    #[test]
    fn over_the_limit_the_oldest_session_ends() {
        let auth = auth(&Server { max_sessions: 2, ..defaults() });
        let now = Instant::now();
        let cookies = [0, 1, 2].map(|secs| auth.sign_in("open sesame", ANA, now + Duration::from_secs(secs)).unwrap());

        let admitted = cookies
            .map(|cookie| auth.admit(&with_cookie(&cookie), ANA, now + Duration::from_secs(3)).unwrap() != Admission::Stranger);

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
    fn many_addresses_together_run_out_of_attempts_and_do_not_keep_out_who_knows_the_token() {
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
        // From this machine.
        assert!(auth.sign_in("open sesame", ANA, now).is_ok());
        assert!(auth.sign_in("open sesame", from(100), now + Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn who_shows_a_token_that_nobody_can_guess_is_let_in_however_many_guess() {
        const LONG: &str = "9f86d081884c7d659a2feaa0c55ad015";
        let settings = Server { sign_ins_per_minute: 1, ..defaults() };
        let auth = Auth::new(Some(LONG.into()), &settings, Arc::new(Counting(AtomicU64::new(1))));
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
