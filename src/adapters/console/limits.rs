//! Limits for each address: requests per second, failed sign-ins per minute, concurrent connections and WebSockets.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::adapters::slots::{self, NoSlot};

/// How many addresses have a bucket of their own. Further addresses share one bucket until others are removed.
const MAX_ADDRESSES: usize = 10_000;

/// The shortest time between two removals of buckets that are full again.
const SWEEP: Duration = Duration::from_secs(1);

/// So many tokens a second, and at most so many at once.
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

    /// Takes a token, or returns how long to wait for one.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.take_unless(now, || false).map(drop)
    }

    /// Takes a token unless `is_free` returns true, or returns how long to wait. `is_free` is called only if a token is left.
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

/// A token bucket for each address.
pub(super) struct RateLimiter {
    rate: Rate,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    by_address: HashMap<IpAddr, Bucket>,
    swept_at: Option<Instant>,
}

impl RateLimiter {
    pub(super) fn new(per_second: f64, burst: f64) -> Self {
        Self { rate: Rate { per_second, burst }, buckets: Mutex::default() }
    }

    /// Takes a token, or returns how long to wait for one.
    pub(super) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.take_unless(address, now, || false).map(drop)
    }

    /// Takes a token unless `is_free` returns true, or returns how long to wait. `is_free` is called only if a token is left. All of this happens
    /// under one lock, so that concurrent attempts neither exceed the limit nor block each other wrongly.
    pub(super) fn take_unless(&self, address: IpAddr, now: Instant, is_free: impl FnOnce() -> bool) -> Result<bool, Duration> {
        self.buckets.lock().bucket(client_key(address), now, self.rate).take_unless(now, is_free)
    }
}

impl Buckets {
    fn bucket(&mut self, address: IpAddr, now: Instant, rate: Rate) -> &mut Bucket {
        let is_full = self.by_address.len() >= MAX_ADDRESSES && !self.by_address.contains_key(&address);
        if is_full && self.swept_at.is_none_or(|at| now.duration_since(at) >= SWEEP) {
            self.swept_at = Some(now);
            self.by_address.retain(|_, bucket| bucket.tokens(now) < rate.burst);
        }
        let is_full = is_full && self.by_address.len() >= MAX_ADDRESSES;
        let key = if is_full { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { address };
        self.by_address.entry(key).or_insert_with(|| Bucket::new(rate, now))
    }
}

/// What counts as one client: an IPv4 address, or an IPv6 /64, which providers assign to one customer. All loopback addresses are one client.
pub(super) fn client_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// One in so many slots is reserved for clients that may take any.
const RESERVED_DIVISOR: usize = 16;
/// The largest number of reserved slots.
const MAX_RESERVED: usize = 64;

/// Slots for connections or WebSockets.
pub(super) type Slots = slots::Slots<IpAddr>;
pub(super) type Slot = slots::Slot<IpAddr>;

impl Slots {
    /// Takes any slot, without a limit per address.
    pub(super) fn take_any(self: &Arc<Self>, address: IpAddr) -> Result<Slot, NoSlot> {
        self.take_within(client_key(address), usize::MAX, self.total)
    }

    /// Takes a slot, but leaves the reserved ones free: a sixteenth of all, at most 64. A proxy has no limit per address.
    pub(super) fn take_unreserved(self: &Arc<Self>, address: IpAddr, is_proxy: bool) -> Result<Slot, NoSlot> {
        let reserved = (self.total / RESERVED_DIVISOR).min(MAX_RESERVED);
        let per_address = if is_proxy { usize::MAX } else { self.per_client };
        self.take_within(client_key(address), per_address, self.total - reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANA: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const BEN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let limiter = RateLimiter::new(2.0, 2.0);
        let now = Instant::now();

        assert_eq!([limiter.take(ANA, now), limiter.take(ANA, now)], [Ok(()), Ok(())]);
        assert_eq!(limiter.take(ANA, now), Err(Duration::from_millis(500)));
        assert_eq!(limiter.take(ANA, now + Duration::from_millis(500)), Ok(()));
    }

    #[test]
    fn one_address_does_not_use_up_the_tokens_of_another() {
        let limiter = RateLimiter::new(1.0, 1.0);
        let now = Instant::now();

        assert!(limiter.take(ANA, now).is_ok());
        assert!(limiter.take(ANA, now).is_err());
        assert!(limiter.take(BEN, now).is_ok());
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

        let refused =
            (0..20_000_u32).filter(|n| limiter.take(IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + n)), now).is_err()).count();

        assert_eq!(limiter.buckets.lock().by_address.len(), MAX_ADDRESSES + 1);
        assert_eq!(refused, 20_000 - MAX_ADDRESSES - 1);
        assert!(limiter.take(BEN, now + Duration::from_secs(2)).is_ok());
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
