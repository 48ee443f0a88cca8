//! The voice server's part in the group of DAVE: it signs proposals to add and to remove members.

use openmls::prelude::tls_codec::{DeserializeBytes as _, Serialize as _};
use openmls::prelude::*;
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;

const SUITE: Ciphersuite = Ciphersuite::MLS_128_DHKEMP256_AES128GCM_SHA256_P256;

pub struct Delivery {
    crypto: OpenMlsRustCrypto,
    key: SignatureKeyPair,
    channel: u64,
}

impl Delivery {
    pub fn new(channel: u64) -> Self {
        let key = SignatureKeyPair::new(SUITE.signature_algorithm()).unwrap();
        Self { crypto: OpenMlsRustCrypto::default(), key, channel }
    }

    /// The payload of message 25.
    pub fn external_sender(&self) -> Vec<u8> {
        let credential = BasicCredential::new(b"voice server".to_vec()).into();
        ExternalSender::new(self.key.public().into(), credential).tls_serialize_detached().unwrap()
    }

    /// The payload of message 27, after the kind, that adds the owner of this key package.
    pub fn add(&self, epoch: u64, key_package: &[u8]) -> Vec<u8> {
        list(&[self.add_message(epoch, key_package)])
    }

    pub fn remove(&self, epoch: u64, leaf: u32) -> Vec<u8> {
        list(&[self.remove_message(epoch, leaf)])
    }

    /// One that removes a member, and adds it again.
    pub fn replace(&self, epoch: u64, leaf: u32, key_package: &[u8]) -> Vec<u8> {
        list(&[self.remove_message(epoch, leaf), self.add_message(epoch, key_package)])
    }

    fn add_message(&self, epoch: u64, key_package: &[u8]) -> Vec<u8> {
        let package = KeyPackageIn::tls_deserialize_exact_bytes(key_package).unwrap();
        let package = package.validate(self.crypto.crypto(), ProtocolVersion::Mls10).unwrap();
        let (group, epoch, index) = (self.group(), GroupEpoch::from(epoch), SenderExtensionIndex::new(0));
        let message = ExternalProposal::new_add::<OpenMlsRustCrypto>(package, group, epoch, &self.key, index).unwrap();
        message.tls_serialize_detached().unwrap()
    }

    fn remove_message(&self, epoch: u64, leaf: u32) -> Vec<u8> {
        let (group, epoch, index) = (self.group(), GroupEpoch::from(epoch), SenderExtensionIndex::new(0));
        let leaf = LeafNodeIndex::new(leaf);
        let message = ExternalProposal::new_remove::<OpenMlsRustCrypto>(leaf, group, epoch, &self.key, index).unwrap();
        message.tls_serialize_detached().unwrap()
    }

    fn group(&self) -> GroupId {
        GroupId::from_slice(&self.channel.to_be_bytes())
    }
}

/// The commit and the welcome of message 28.
pub fn split(payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (_, welcome) = MlsMessageIn::tls_deserialize_bytes(payload).unwrap();
    let (commit, welcome) = payload.split_at(payload.len() - welcome.len());
    (commit.to_vec(), welcome.to_vec())
}

fn list(messages: &[Vec<u8>]) -> Vec<u8> {
    VLBytes::new(messages.concat()).tls_serialize_detached().unwrap()
}
