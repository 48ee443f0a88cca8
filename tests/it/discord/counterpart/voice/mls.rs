//! The messages of MLS that a delivery service makes and inspects.
//!
//! <https://daveprotocol.com/#delivery-service>, <https://www.rfc-editor.org/rfc/rfc9420.html>

use openmls::prelude::tls_codec::{DeserializeBytes as _, Serialize as _};
use openmls::prelude::{
    BasicCredential, Ciphersuite, CredentialType, ExternalProposal, ExternalSender, GroupEpoch, GroupId, HashType, KeyPackage,
    KeyPackageIn, LeafNodeIndex, MlsMessageIn, MlsMessageOut, OpenMlsCrypto as _, OpenMlsProvider as _, ProtocolVersion,
    SenderExtensionIndex,
};
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;

use super::super::Id;

/// The suite of DAVE's version 1.
const SUITE: Ciphersuite = Ciphersuite::MLS_128_DHKEMP256_AES128GCM_SHA256_P256;

/// The external sender of all groups.
pub struct Sender {
    crypto: OpenMlsRustCrypto,
    key: SignatureKeyPair,
}

/// A proposal as it is broadcast, with the reference that commits name it by.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub reference: Vec<u8>,
    pub message: Vec<u8>,
}

/// A valid key package of a user.
#[derive(Clone)]
pub struct Package {
    package: KeyPackage,
    reference: Vec<u8>,
}

impl Default for Sender {
    fn default() -> Self {
        let key = SignatureKeyPair::new(SUITE.signature_algorithm()).expect("a key");
        Self { crypto: OpenMlsRustCrypto::default(), key }
    }
}

impl Sender {
    /// The payload of op 25.
    pub fn package(&self) -> Vec<u8> {
        let credential = BasicCredential::new(b"voice-gateway".to_vec()).into();
        ExternalSender::new(self.key.public().into(), credential).tls_serialize_detached().expect("it can be written")
    }

    /// Reads the payload of op 26 of a user: a key package, bare or as an MLS message.
    ///
    /// # Errors
    ///
    /// Why the key package is refused. <https://daveprotocol.com/#validation>
    pub fn read_package(&self, payload: &[u8], user: Id) -> Result<Package, &'static str> {
        let bare = payload.strip_prefix(&[0, 1, 0, 5]).unwrap_or(payload);
        let package = KeyPackageIn::tls_deserialize_exact_bytes(bare).map_err(|_| "no key package")?;
        let package = package.validate(self.crypto.crypto(), ProtocolVersion::Mls10).map_err(|_| "an invalid key package")?;
        let lifetime = package.life_time();
        if package.ciphersuite() != SUITE {
            Err("another cipher suite")
        } else if package.leaf_node().credential().credential_type() != CredentialType::Basic
            || package.leaf_node().credential().serialized_content() != user.0.to_be_bytes()
        {
            Err("a key package of another user")
        } else if (lifetime.not_before(), lifetime.not_after()) != (0, u64::MAX) {
            Err("a key package that expires")
        } else {
            Ok(self.packed(package))
        }
    }

    fn packed(&self, package: KeyPackage) -> Package {
        let reference = package.hash_ref(self.crypto.crypto()).expect("a hash").as_slice().to_vec();
        Package { package, reference }
    }

    /// Proposes to add a user to the group of a channel.
    pub fn add(&self, channel: Id, epoch: u64, package: &Package) -> Proposal {
        let (group, epoch, sender) = (group_id(channel), GroupEpoch::from(epoch), SenderExtensionIndex::new(0));
        let message = ExternalProposal::new_add::<OpenMlsRustCrypto>(package.package.clone(), group, epoch, &self.key, sender);
        self.proposal(message.expect("a proposal"))
    }

    /// Proposes to remove the member at a leaf from the group of a channel.
    pub fn remove(&self, channel: Id, epoch: u64, leaf: u32) -> Proposal {
        let (group, epoch, sender) = (group_id(channel), GroupEpoch::from(epoch), SenderExtensionIndex::new(0));
        let message =
            ExternalProposal::new_remove::<OpenMlsRustCrypto>(LeafNodeIndex::new(leaf), group, epoch, &self.key, sender);
        self.proposal(message.expect("a proposal"))
    }

    /// <https://www.rfc-editor.org/rfc/rfc9420.html#section-5.2>
    fn proposal(&self, message: MlsMessageOut) -> Proposal {
        let message = message.tls_serialize_detached().expect("it can be written");
        // Behind the version, a public message of an external sender is what is hashed: it has no membership tag.
        let content = &message[2..];
        let mut input = vector(b"MLS 1.0 Proposal Reference");
        input.extend(vector(content));
        let reference = self.crypto.crypto().hash(HashType::Sha2_256, &input).expect("a hash");
        Proposal { reference, message }
    }
}

impl Package {
    /// The reference by which a welcome names its target.
    pub fn reference(&self) -> &[u8] {
        &self.reference
    }

    /// The public key of the user's signatures.
    fn signature_key(&self) -> &[u8] {
        self.package.leaf_node().signature_key().as_slice()
    }
}

/// The parts of an op 28 payload that a delivery service inspects.
pub struct Commit<'a> {
    /// The MLS message.
    pub message: &'a [u8],
    pub group: &'a [u8],
    pub epoch: u64,
    /// The leaf of the member who made it.
    pub leaf: u32,
    /// The proposals that it references, in order.
    pub references: Vec<&'a [u8]>,
    /// Whether it contains proposals itself.
    pub has_own_proposals: bool,
    /// The signature key and the identity in the new leaf of the member who made it.
    new_leaf: Option<(&'a [u8], &'a [u8])>,
    /// The welcome behind it. Empty if there is none.
    pub welcome: &'a [u8],
}

impl<'a> Commit<'a> {
    /// None: it is no public commit of a member.
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let (_, welcome) = MlsMessageIn::tls_deserialize_bytes(payload).ok()?;
        let message = &payload[..payload.len() - welcome.len()];
        let mut reader = Reader(message);
        // Version 1.0, wire format: public message.
        (reader.take(4)? == [0, 1, 0, 1]).then_some(())?;
        let group = reader.vector()?;
        let epoch = u64::from_be_bytes(reader.take(8)?.try_into().ok()?);
        (reader.byte()? == 1).then_some(())?;
        let leaf = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
        reader.vector()?;
        (reader.byte()? == 3).then_some(())?;
        let mut proposals = Reader(reader.vector()?);
        let (mut references, mut has_own_proposals) = (Vec::new(), false);
        while !proposals.0.is_empty() {
            match proposals.byte()? {
                2 => references.push(proposals.vector()?),
                _ => {
                    has_own_proposals = true;
                    break;
                }
            }
        }
        let new_leaf = match reader.byte()? {
            1 => {
                reader.vector()?;
                let signature_key = reader.vector()?;
                (reader.take(2)? == [0, 1]).then_some(())?;
                Some((signature_key, reader.vector()?))
            }
            _ => None,
        };
        Some(Self { message, group, epoch, leaf, references, has_own_proposals, new_leaf, welcome })
    }

    /// Whether the one who made it keeps the signature key and the identity of this key package.
    pub fn keeps_identity(&self, user: Id, package: &Package) -> bool {
        let kept = (package.signature_key(), &user.0.to_be_bytes()[..]);
        self.new_leaf.is_none_or(|new_leaf| new_leaf == kept)
    }
}

/// A welcome for several new members.
pub struct Welcome<'a> {
    suite: &'a [u8],
    /// For each new member the reference of its key package, and its encrypted secrets.
    secrets: Vec<(&'a [u8], &'a [u8])>,
    info: &'a [u8],
}

impl<'a> Welcome<'a> {
    pub fn read(welcome: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(welcome);
        let suite = reader.take(2)?;
        let mut list = Reader(reader.vector()?);
        let info = reader.0;
        reader.vector()?;
        reader.0.is_empty().then_some(())?;
        let mut secrets = Vec::new();
        while !list.0.is_empty() {
            let whole = list.0;
            let reference = list.vector()?;
            list.vector()?;
            list.vector()?;
            secrets.push((reference, &whole[..whole.len() - list.0.len()]));
        }
        Some(Self { suite, secrets, info })
    }

    /// How many new members it is for.
    pub fn targets(&self) -> usize {
        self.secrets.len()
    }

    /// The welcome for one new member: with no other's secrets.
    pub fn only_for(&self, reference: &[u8]) -> Option<Vec<u8>> {
        let (_, secrets) = self.secrets.iter().find(|(named, _)| *named == reference)?;
        Some([self.suite, &vector(secrets), self.info].concat())
    }
}

fn group_id(channel: Id) -> GroupId {
    GroupId::from_slice(&channel.0.to_be_bytes())
}

/// A vector with its length in front.
///
/// <https://www.rfc-editor.org/rfc/rfc9420.html#section-2.1.2>
pub fn vector(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a length that fits");
    let mut bytes = match length {
        0..0x40 => vec![length as u8],
        0x40..0x4000 => (length as u16 | 0x4000).to_be_bytes().to_vec(),
        _ => (length | 0x8000_0000).to_be_bytes().to_vec(),
    };
    bytes.extend(content);
    bytes
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn vector(&mut self) -> Option<&'a [u8]> {
        let first = self.byte()?;
        let length = match first >> 6 {
            0 => u32::from(first),
            1 => u32::from_be_bytes([0, 0, first & 0x3f, self.byte()?]),
            2 => match *self.take(3)? {
                [b, c, d] => u32::from_be_bytes([first & 0x3f, b, c, d]),
                _ => return None,
            },
            _ => return None,
        };
        self.take(length as usize)
    }
}
