//! For how long this server may act outside its store.

/// The right to act for the channels of a store: to post, and to be connected to platforms.
pub trait Lease: Send + Sync + 'static {
    /// Whether it is held now. Asked right before each request to a platform, because another server acts once it has run out.
    fn is_held(&self) -> bool;

    /// Who acts, for the logs of platforms: the node and its term. `None`: no other server can.
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
