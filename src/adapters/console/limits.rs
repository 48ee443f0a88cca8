//! Limits for each address: requests per second, failed sign-ins per minute, concurrent connections and WebSockets. Guests have further limits,
//! also on responses in memory, for each visit and for all visits of an invitation.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::adapters::slots::{self, NoSlot};
use crate::ports::backend::guest_service::Visit;

/// The number of clients with a bucket of their own. Further clients share one bucket until others are removed.
const MAX_CLIENTS: usize = 10_000;

/// The shortest time between two removals of full buckets.
const SWEEP: Duration = Duration::from_secs(1);

/// The refill rate of a bucket in tokens per second, and its capacity.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub(super) per_second: f64,
    pub(super) burst: f64,
}

/// A token bucket.
pub(super) struct Bucket {
    rate: Rate,
    tokens: f64,
    updated_at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, updated_at: now }
    }

    /// Takes a token, or returns the time to wait for one.
    pub(super) fn take_token(&mut self, now: Instant) -> Result<(), Duration> {
        self.take_unless(now, || false).map(drop)
    }

    /// Takes a token unless `is_free` returns true, or returns the time to wait for a token. `is_free` is called only if a token is left.
    fn take_unless(&mut self, now: Instant, is_free: impl FnOnce() -> bool) -> Result<bool, Duration> {
        self.tokens = self.tokens(now);
        self.updated_at = now;
        if self.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.tokens) / self.rate.per_second));
        }
        let is_free = is_free();
        self.tokens -= f64::from(u8::from(!is_free));
        Ok(is_free)
    }

    fn tokens(&self, now: Instant) -> f64 {
        (self.tokens + now.duration_since(self.updated_at).as_secs_f64() * self.rate.per_second).min(self.rate.burst)
    }
}

/// A token bucket for each client, by its address or another key.
pub(super) struct RateLimiter<C = IpAddr> {
    rate: Rate,
    buckets: Mutex<Buckets<C>>,
}

struct Buckets<C> {
    /// The key `None` is the bucket shared by clients without a bucket of their own.
    by_client: HashMap<Option<C>, Bucket>,
    swept_at: Option<Instant>,
}

impl RateLimiter {
    /// Takes a token, or returns the time to wait for one.
    pub(super) fn take_token(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.take_unless(address, now, || false).map(drop)
    }

    /// Takes a token unless `is_free` returns true, or returns the time to wait for a token. `is_free` is called only if a token is left. The
    /// bucket stays locked meanwhile, so that concurrent attempts neither exceed the limit nor block each other wrongly.
    pub(super) fn take_unless(&self, address: IpAddr, now: Instant, is_free: impl FnOnce() -> bool) -> Result<bool, Duration> {
        self.take_of(client_key(address), now, is_free)
    }
}

impl<C: Eq + Hash> RateLimiter<C> {
    pub(super) fn new(per_second: f64, burst: f64) -> Self {
        let buckets = Buckets { by_client: HashMap::new(), swept_at: None };
        Self { rate: Rate { per_second, burst }, buckets: Mutex::new(buckets) }
    }

    fn take_of(&self, client: C, now: Instant, is_free: impl FnOnce() -> bool) -> Result<bool, Duration> {
        self.buckets.lock().bucket(client, now, self.rate).take_unless(now, is_free)
    }
}

impl<C: Eq + Hash> Buckets<C> {
    fn bucket(&mut self, client: C, now: Instant, rate: Rate) -> &mut Bucket {
        let client = Some(client);
        let is_full = self.by_client.len() >= MAX_CLIENTS && !self.by_client.contains_key(&client);
        if is_full && self.swept_at.is_none_or(|at| now.duration_since(at) >= SWEEP) {
            self.swept_at = Some(now);
            self.by_client.retain(|_, bucket| bucket.tokens(now) < rate.burst);
        }
        let is_full = is_full && self.by_client.len() >= MAX_CLIENTS;
        let key = if is_full { None } else { client };
        self.by_client.entry(key).or_insert_with(|| Bucket::new(rate, now))
    }
}

/// The unit that counts as one client: an IPv4 address, or an IPv6 /64, which providers assign to one customer. All loopback addresses are one
/// client.
pub(super) fn client_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// One in this many slots is reserved for clients that may take any slot.
const RESERVED_DIVISOR: usize = 16;
/// The largest number of reserved slots.
const MAX_RESERVED: usize = 64;

/// Slots for connections or WebSockets.
pub(super) type Slots = slots::Slots<IpAddr>;
pub(super) type Slot = slots::Slot<IpAddr>;

/// Takes any slot, without a limit per address.
pub(super) fn take_any(slots: &Arc<Slots>, address: IpAddr) -> Result<Slot, NoSlot> {
    slots.acquire_within(client_key(address), usize::MAX, slots.total)
}

/// Takes a slot, but leaves the reserved ones free: a sixteenth of all, at most 64. A proxy has no limit per address.
pub(super) fn take_unreserved(slots: &Arc<Slots>, address: IpAddr, is_proxy: bool) -> Result<Slot, NoSlot> {
    let reserved = (slots.total / RESERVED_DIVISOR).min(MAX_RESERVED);
    let per_address = if is_proxy { usize::MAX } else { slots.per_client };
    slots.acquire_within(client_key(address), per_address, slots.total - reserved)
}

/// The requests per second of a visit, and of all visits of an invitation.
const REQUESTS_OF_VISIT: f64 = 20.0;
const REQUESTS_OF_INVITATION: f64 = 100.0;
/// The burst of guests, in seconds of requests. Opening a page sends many requests at once.
const SECONDS_AT_ONCE: f64 = 10.0;

/// The names that are tried per second with an invitation, and at once. Each is compared with all names on record.
const NAMES_OF_INVITATION: f64 = 1.0;
const NAMES_AT_ONCE: f64 = 60.0;
/// One address has half of them, so that it does not keep others from joining.
const NAMES_DIVISOR: f64 = 2.0;

/// Limits the requests of each visit, and of all visits of an invitation, and the names that are tried with one.
pub(super) struct GuestRequests {
    of_visit: RateLimiter<Arc<str>>,
    of_invitation: RateLimiter<Arc<str>>,
    /// By the secret of the link.
    names: RateLimiter<Arc<str>>,
    names_of_address: RateLimiter<(Arc<str>, IpAddr)>,
}

impl GuestRequests {
    /// The rates never exceed the limits of a single address.
    pub(super) fn new(per_second: f64, burst: f64) -> Self {
        let limiter = |rate: f64| RateLimiter::new(rate.min(per_second), (rate * SECONDS_AT_ONCE).min(burst));
        Self {
            of_visit: limiter(REQUESTS_OF_VISIT),
            of_invitation: limiter(REQUESTS_OF_INVITATION),
            names: RateLimiter::new(NAMES_OF_INVITATION, NAMES_AT_ONCE),
            names_of_address: RateLimiter::new(NAMES_OF_INVITATION / NAMES_DIVISOR, NAMES_AT_ONCE / NAMES_DIVISOR),
        }
    }

    /// Counts a name that is tried with the link of an open invitation, or returns the time to wait.
    pub(super) fn take_name(&self, secret: &str, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.names_of_address.take_of((secret.into(), client_key(address)), now, || false)?;
        self.names.take_of(secret.into(), now, || false).map(drop)
    }

    /// Counts a request, or returns the time to wait.
    pub(super) fn take_token(&self, visit: &Visit, now: Instant) -> Result<(), Duration> {
        self.of_visit.take_of(visit.cookie.clone(), now, || false)?;
        self.of_invitation.take_of(visit.invitation.clone(), now, || false).map(drop)
    }
}

/// Limits the resources that guests hold, such as live views: a number for each visit, and a number for all visits of an invitation.
pub(super) struct Shares {
    of_visit: usize,
    of_invitation: usize,
    /// The semaphores by cookie and by invitation, as long as a permit is in use.
    places: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// The permits of a visit and of its invitation.
pub(super) type Share = [OwnedSemaphorePermit; 2];

impl Shares {
    pub(super) fn new(of_visit: usize, of_invitation: usize) -> Self {
        Self { of_visit, of_invitation, places: Mutex::default() }
    }

    /// Waits for a permit.
    pub(super) async fn acquire(&self, visit: &Visit) -> Option<Share> {
        let [of_visit, of_invitation] = self.of(visit);
        Some([of_visit.acquire_owned().await.ok()?, of_invitation.acquire_owned().await.ok()?])
    }

    /// Takes a permit if one is free.
    pub(super) fn try_acquire(&self, visit: &Visit) -> Option<Share> {
        let [of_visit, of_invitation] = self.of(visit);
        Some([of_visit.try_acquire_owned().ok()?, of_invitation.try_acquire_owned().ok()?])
    }

    fn of(&self, visit: &Visit) -> [Arc<Semaphore>; 2] {
        let mut places = self.places.lock();
        places.retain(|_, place| place.strong_count() > 0);
        [(&visit.cookie, self.of_visit), (&visit.invitation, self.of_invitation)].map(|(key, most)| {
            places.get(key).and_then(Weak::upgrade).unwrap_or_else(|| {
                let place = Arc::new(Semaphore::new(most));
                places.insert(key.clone(), Arc::downgrade(&place));
                place
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Seq;
    use crate::domain::moment::Moment;

    fn visit(invitation: &str, cookie: &str) -> Visit {
        Visit {
            invitation: invitation.into(),
            cookie: cookie.into(),
            guild: "home".into(),
            channel: "console:lobby".into(),
            name: cookie.into(),
            from: Seq::NONE,
            joined_at: Moment::ZERO,
            ends_at: None,
        }
    }

    #[test]
    fn a_guest_leaves_room_for_others_of_the_invitation_and_an_invitation_for_others() {
        let shares = Shares::new(1, 2);
        let (ben, cleo, dora, emil) = (visit("one", "ben"), visit("one", "cleo"), visit("one", "dora"), visit("two", "emil"));

        let taken = shares.try_acquire(&ben);
        assert!(taken.is_some() && shares.try_acquire(&ben).is_none());
        let more = [shares.try_acquire(&cleo), shares.try_acquire(&emil)];
        assert!(more.iter().all(Option::is_some) && shares.try_acquire(&dora).is_none());

        drop((taken, more));
        assert!(
            shares.try_acquire(&ben).is_some() && shares.places.lock().len() <= 2,
            "nothing is kept of guests that hold nothing"
        );
    }

    #[test]
    fn the_requests_of_a_guest_and_of_an_invitation_are_bounded() {
        let requests = GuestRequests::new(2_000.0, 4_000.0);
        let now = Instant::now();
        let ask = |who: &Visit| (0..5_000).filter(|_| requests.take_token(who, now).is_ok()).count();

        assert_eq!(ask(&visit("one", "ben")), 200);
        let others: usize = (0..10).map(|n| ask(&visit("one", &format!("guest {n}")))).sum();
        assert_eq!((others, ask(&visit("two", "emil"))), (800, 200));
    }

    #[test]
    fn names_are_tried_a_minutes_worth_at_once() {
        let requests = GuestRequests::new(2_000.0, 4_000.0);
        let now = Instant::now();
        let by = |address, secret: &str, now| (0..1_000).filter(|_| requests.take_name(secret, address, now).is_ok()).count();
        let tried = |secret: &str, now| (1..=4).map(|n| by(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), secret, now)).sum::<usize>();

        let after_10_seconds = now + Duration::from_secs(10);
        assert_eq!([tried("one", now), tried("two", now), tried("one", after_10_seconds)], [60, 60, 10]);
        assert_eq!(by(ANA, "three", now), 30, "one address leaves names for others");
    }

    const ANA: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const BEN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let limiter = RateLimiter::new(2.0, 2.0);
        let now = Instant::now();

        assert_eq!([limiter.take_token(ANA, now), limiter.take_token(ANA, now)], [Ok(()), Ok(())]);
        assert_eq!(limiter.take_token(ANA, now), Err(Duration::from_millis(500)));
        assert_eq!(limiter.take_token(ANA, now + Duration::from_millis(500)), Ok(()));
    }

    #[test]
    fn one_address_does_not_use_up_the_tokens_of_another() {
        let limiter = RateLimiter::new(1.0, 1.0);
        let now = Instant::now();

        assert!(limiter.take_token(ANA, now).is_ok());
        assert!(limiter.take_token(ANA, now).is_err());
        assert!(limiter.take_token(BEN, now).is_ok());
    }

    #[test]
    fn a_free_attempt_takes_no_token_and_is_not_made_without_one() {
        let limiter = RateLimiter::new(1.0, 1.0);
        let now = Instant::now();

        assert_eq!(limiter.take_unless(ANA, now, || true), Ok(true));
        assert_eq!(limiter.take_unless(ANA, now, || false), Ok(false));
        assert_eq!(limiter.take_unless(ANA, now, || unreachable!()), Err(Duration::from_secs(1)));
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_addresses() {
        let limiter = RateLimiter::new(1.0, 1.0);
        let now = Instant::now();

        let refused = (0..20_000_u32)
            .filter(|n| limiter.take_token(IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + n)), now).is_err())
            .count();

        assert_eq!(limiter.buckets.lock().by_client.len(), MAX_CLIENTS + 1);
        assert_eq!(refused, 20_000 - MAX_CLIENTS - 1);
        assert!(limiter.take_token(BEN, now + Duration::from_secs(2)).is_ok());
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_client() {
        let keys = ["2001:db8::1", "2001:db8::ffff:1", "::ffff:10.0.0.1"].map(|address| client_key(address.parse().unwrap()));

        assert_eq!(keys[0], keys[1]);
        assert_eq!(keys[2], ANA);
    }

    #[test]
    fn all_loopback_addresses_are_one_client() {
        let keys = ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.2"].map(|address| client_key(address.parse().unwrap()));

        assert_eq!(keys, [IpAddr::V4(Ipv4Addr::LOCALHOST); 4]);
    }
}
