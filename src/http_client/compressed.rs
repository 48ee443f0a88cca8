//! Decodes compressed responses (RFC 9110, 8.4.1). None is requested, but some servers and proxies compress all responses.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use flate2::{Decompress, DecompressError, FlushDecompress, Status};
use http::Response;
use hyper::body::{Body, Buf as _, Bytes, Frame, Incoming};
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH};

/// The maximum number of bytes that are decoded at a time. The reader of the body limits its length.
const MAX_CHUNK: usize = 16 * 1024;
/// The window of gzip, as a power of two.
const GZIP_WINDOW: u8 = 15;
/// The first byte of each member of a gzip file, of which there may be several.
const GZIP_BEGINS: u8 = 0x1f;
/// The method in the low bits of the first byte of zlib's header. A block of deflate does not begin so.
const ZLIB_METHOD: u8 = 8;

#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    /// Zlib's format, or its content alone, which some servers send.
    Deflate,
}

/// Decodes the body of a response. If its coding is not known, the response is unchanged, with its header `Content-Encoding`.
pub(super) fn decoded(mut response: Response<Incoming>) -> Response<reqwest::Body> {
    let named = response.headers().get(CONTENT_ENCODING).map(|coding| coding.as_bytes().trim_ascii().to_ascii_lowercase());
    let coding = match named.as_deref() {
        Some(b"gzip" | b"x-gzip") => Some(Coding::Gzip),
        Some(b"deflate") => Some(Coding::Deflate),
        Some(b"identity" | b"") => None,
        _ => return response.map(reqwest::Body::wrap),
    };
    response.headers_mut().remove(CONTENT_ENCODING);
    let Some(coding) = coding else { return response.map(reqwest::Body::wrap) };
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|body| {
        reqwest::Body::wrap(Decoding { body, coding, decoder: None, input: Bytes::new(), has_begun: false, is_full: false })
    })
}

struct Decoding {
    body: Incoming,
    coding: Coding,
    /// `None` before the first byte of a compressed stream, and after its end.
    decoder: Option<Decompress>,
    /// The bytes that are still to be decoded.
    input: Bytes,
    has_begun: bool,
    /// The last output was as long as possible, so the decoder may hold more.
    is_full: bool,
}

impl Decoding {
    /// Decodes the next bytes. Empty if more input is needed.
    fn decode(&mut self) -> Result<Vec<u8>, DecompressError> {
        let mut output = Vec::new();
        if self.decoder.is_none()
            && let Some(first) = self.input.first()
        {
            self.decoder = match self.coding {
                Coding::Gzip if !self.has_begun || *first == GZIP_BEGINS => Some(Decompress::new_gzip(GZIP_WINDOW)),
                Coding::Deflate if !self.has_begun => Some(Decompress::new(first & 0x0f == ZLIB_METHOD)),
                // What follows the compressed data is ignored.
                _ => None,
            };
            self.has_begun = true;
        }
        let Some(decoder) = &mut self.decoder else {
            self.input.clear();
            return Ok(output);
        };
        if self.input.is_empty() && !self.is_full {
            return Ok(output);
        }
        output.reserve_exact(MAX_CHUNK);
        let before = decoder.total_in();
        let status = decoder.decompress_vec(&self.input, &mut output, FlushDecompress::None)?;
        let read = decoder.total_in() - before;
        self.input.advance(read.try_into().unwrap_or(self.input.len()));
        self.is_full = output.len() == output.capacity();
        if status == Status::StreamEnd {
            self.decoder = None;
        }
        Ok(output)
    }
}

impl Body for Decoding {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            match self.decode() {
                Ok(output) if output.is_empty() && self.input.is_empty() => {}
                Ok(output) if output.is_empty() => continue,
                Ok(output) => return Poll::Ready(Some(Ok(Frame::data(output.into())))),
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.input = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None if self.decoder.take().is_some() => return Poll::Ready(Some(Err("the compressed data is cut off".into()))),
                None => return Poll::Ready(None),
            }
        }
    }
}
