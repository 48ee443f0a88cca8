//! Bounds what one address can do: requests a second, failed sign-ins a minute, connections and WebSockets at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many addresses are told apart. Over it, newcomers share one allowance until others are forgotten.
const MAX_ADDRESSES: usize = 10_000;

/// How often addresses that need not be remembered are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// An allowance for each address, that fills again at a steady rate (a token bucket).
pub(super) struct Allowance {
    per_second: f64,
    burst: f64,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    by_address: HashMap<IpAddr, Bucket>,
    swept_at: Option<Instant>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl Allowance {
    pub(super) fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, buckets: Mutex::default() }
    }

    /// Takes one, or tells how long until there is one.
    pub(super) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.take_unless(address, now, || false).map(drop)
    }

    /// Takes one unless it turns out to be free, or tells how long until it can be tried again. One step: what is tried at the same time
    /// neither slips through nor gets in each other's way.
    pub(super) fn take_unless(&self, address: IpAddr, now: Instant, is_free: impl FnOnce() -> bool) -> Result<bool, Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.of(party(address), now, self);
        bucket.left = self.left(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / self.per_second));
        }
        let is_free = is_free();
        if !is_free {
            bucket.left -= 1.0;
        }
        Ok(is_free)
    }

    fn left(&self, bucket: &Bucket, now: Instant) -> f64 {
        (bucket.left + now.duration_since(bucket.at).as_secs_f64() * self.per_second).min(self.burst)
    }
}

impl Buckets {
    fn of(&mut self, address: IpAddr, now: Instant, allowance: &Allowance) -> &mut Bucket {
        let is_full = self.by_address.len() >= MAX_ADDRESSES && !self.by_address.contains_key(&address);
        if is_full && self.swept_at.is_none_or(|at| now.duration_since(at) >= SWEEP) {
            self.swept_at = Some(now);
            self.by_address.retain(|_, bucket| allowance.left(bucket, now) < allowance.burst);
        }
        let is_full = is_full && self.by_address.len() >= MAX_ADDRESSES;
        let key = if is_full { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { address };
        self.by_address.entry(key).or_insert(Bucket { left: allowance.burst, at: now })
    }
}

/// Who counts as one: an IPv4 address, or an IPv6 network of 64 bits, as one customer is given. All loopback addresses are this machine.
pub(super) fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// Of all places this part is kept for whoever may take any,
const KEPT_PART: usize = 16;
/// but no more than so many.
const MOST_KEPT: usize = 64;

/// Places for connections, or for WebSockets.
pub(super) struct Places {
    total: usize,
    per_address: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A place that is taken until this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    Full,
    /// This address has taken what one may take.
    FullForAddress,
}

impl Places {
    pub(super) fn new(total: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { total, per_address, taken: Mutex::default() })
    }

    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Place, NoPlace> {
        self.take_of(address, self.per_address, self.total)
    }

    /// Takes one however many this address has.
    pub(super) fn take_any(self: &Arc<Self>, address: IpAddr) -> Result<Place, NoPlace> {
        self.take_of(address, usize::MAX, self.total)
    }

    /// Takes one and leaves some for those who may take any: a sixteenth, 64 at most. Whoever speaks for many may have any number of the rest.
    pub(super) fn take_leaving_some(self: &Arc<Self>, address: IpAddr, speaks_for_many: bool) -> Result<Place, NoPlace> {
        let kept = (self.total / KEPT_PART).min(MOST_KEPT);
        let per_address = if speaks_for_many { usize::MAX } else { self.per_address };
        self.take_of(address, per_address, self.total - kept)
    }

    fn take_of(self: &Arc<Self>, address: IpAddr, per_address: usize, total: usize) -> Result<Place, NoPlace> {
        let address = party(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.values().sum::<usize>() >= total {
            return Err(NoPlace::Full);
        }
        if taken.get(&address).copied().unwrap_or_default() >= per_address {
            return Err(NoPlace::FullForAddress);
        }
        *taken.entry(address).or_default() += 1;
        Ok(Place { places: Arc::clone(self), address })
    }

    /// How many are taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANA: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const BEN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn an_allowance_ends_and_fills_again() {
        let allowance = Allowance::new(2.0, 2.0);
        let now = Instant::now();

        assert_eq!([allowance.take(ANA, now), allowance.take(ANA, now)], [Ok(()), Ok(())]);
        assert_eq!(allowance.take(ANA, now), Err(Duration::from_millis(500)));
        assert_eq!(allowance.take(ANA, now + Duration::from_millis(500)), Ok(()));
    }

    #[test]
    fn one_address_does_not_use_up_what_another_has() {
        let allowance = Allowance::new(1.0, 1.0);
        let now = Instant::now();

        assert!(allowance.take(ANA, now).is_ok());
        assert!(allowance.take(ANA, now).is_err());
        assert!(allowance.take(BEN, now).is_ok());
    }

    #[test]
    fn what_is_free_is_not_taken_and_not_tried_when_nothing_is_left() {
        let allowance = Allowance::new(1.0, 1.0);
        let now = Instant::now();

        assert_eq!(allowance.take_unless(ANA, now, || true), Ok(true));
        assert_eq!(allowance.take_unless(ANA, now, || false), Ok(false));
        assert_eq!(allowance.take_unless(ANA, now, || unreachable!()), Err(Duration::from_secs(1)));
    }

    #[test]
    fn memory_is_bounded_whoever_comes() {
        let allowance = Allowance::new(1.0, 1.0);
        let now = Instant::now();

        let refused =
            (0..20_000_u32).filter(|n| allowance.take(IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + n)), now).is_err()).count();

        assert_eq!(allowance.buckets.lock().unwrap().by_address.len(), MAX_ADDRESSES + 1);
        assert_eq!(refused, 20_000 - MAX_ADDRESSES - 1);
        assert!(allowance.take(BEN, now + Duration::from_secs(2)).is_ok());
    }

    #[test]
    fn a_network_of_64_bits_is_one_party() {
        let parties = ["2001:db8::1", "2001:db8::ffff:1", "::ffff:10.0.0.1"].map(|address| party(address.parse().unwrap()));

        assert_eq!(parties[0], parties[1]);
        assert_eq!(parties[2], ANA);
    }

    #[test]
    fn all_loopback_addresses_are_one_party() {
        let parties = ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.2"].map(|address| party(address.parse().unwrap()));

        assert_eq!(parties, [IpAddr::V4(Ipv4Addr::LOCALHOST); 4]);
    }

    #[test]
    fn places_are_counted_in_total_and_by_address() {
        let places = Places::new(3, 2);

        let held = [places.take(ANA), places.take(ANA), places.take(BEN)].map(Result::unwrap);

        assert_eq!(places.take(BEN).err(), Some(NoPlace::Full));
        drop(held);
        let held = [places.take(ANA), places.take(ANA)].map(Result::unwrap);
        assert_eq!(places.take(ANA).err(), Some(NoPlace::FullForAddress));
        assert!(places.take_any(ANA).is_ok());
        drop(held);
        assert_eq!(places.taken(), 0);
    }
}
