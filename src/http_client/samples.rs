//! A server for tests, of other crates too (feature `samples`), whose certificate no machine trusts.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use reqwest::Url;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// An authority that no machine trusts, a certificate of it for `localhost`, and its key. They are valid from 2020 to 2119.
pub const AUTHORITY: &[u8] = include_bytes!("tests/authority.pem");
const SERVER: &[u8] = include_bytes!("tests/server.pem");
const KEY: &[u8] = include_bytes!("tests/server.key.der");

/// A server with this certificate that answers every request with 204. It returns its port.
pub fn tls_server(certificate: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
    let key = PrivateKeyDer::try_from(KEY).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(vec![certificate], key));
    let config = Arc::new(config.expect("a configuration"));
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).expect("a connection"), stream);
            // A client that does not trust the certificate closes the connection.
            if matches!(stream.read(&mut [0; 4_096]), Ok(1..)) {
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").and_then(|()| stream.flush());
            }
        }
    });
    port
}

/// A server whose certificate this machine does not trust.
pub fn untrusted_server() -> Url {
    format!("https://localhost:{}", tls_server(SERVER)).parse().expect("a URL")
}
