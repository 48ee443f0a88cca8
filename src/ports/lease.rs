//! The lease that lets this server act outside its store.

/// The lease on the channels of a store. Its holder may post and connect to platforms.
pub trait Lease: Send + Sync + 'static {
    /// Whether the lease is held now. Callers check right before each request to a platform, because another server acts once the
    /// lease has expired.
    fn is_held(&self) -> bool;

    /// The holder, for the logs of platforms: the node and its term. `None`: no other server can hold the lease.
    fn holder(&self) -> Option<String>;
}

/// The lease of a server whose store no other server can open.
pub struct Unlimited;

impl Lease for Unlimited {
    fn is_held(&self) -> bool {
        true
    }

    fn holder(&self) -> Option<String> {
        None
    }
}
